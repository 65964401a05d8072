package value

// Scalar returns the text of a value for use inside a key: the text of a string or number,
// "true" or "false" for a boolean, and "" for any other kind.
func Scalar(v Value) string {
	switch v.Kind() {
	case String, Number:
		return v.Text()
	case Bool:
		if v.Bool() {
			return "true"
		}
		return "false"
	}
	return ""
}
