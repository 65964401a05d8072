package model

// The words that certain values must be chosen from.
var (
	types = []string{
		string(TypeString), string(TypeNumber), string(TypeBoolean), string(TypeFlag), string(TypeTime), string(TypeBinary),
		string(TypeList), string(TypeMap), string(TypeStrings), string(TypeNumbers), string(TypeCommas), string(TypeAny),
	}
	keyTypeNames = []string{"string", "number", "binary"}
	// records are the names that stand for parts of the record.
	records = []string{"$time", "$position", "$event", "$key", "$old", "$new"}
)
