package value

// Scalar is how a value stands inside a key: the text of a string or number,
// "true" or "false"; "" for anything else.
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
