package model

import "slices"

// shapes lists the keys of the language: for each kind of map with fixed keys, all keys that
// it may have. models/schema.json defines the same keys.
var shapes = map[string][]string{
	"model":          {"model", "tables", "entities", "derive", "migrate", "search", "queries"},
	"table":          {"key", "ttl", "indexes", "stream"},
	"index":          {"key", "local", "projection"},
	"entity":         {"table", "where", "key", "attributes", "expires", "unique", "new", "flatten", "once", "supersede"},
	"key template":   {"template", "case"},
	"attribute":      {"type", "as", "zone", "required", "default", "enum", "min", "max", "whole", "hidden", "legacy", "after", "else", "by", "forward", "from", "plus"},
	"once":           {"of", "key", "set"},
	"supersede":      {"where", "row", "append"},
	"tally":          append(aggregates(), "where", "to", "round", "max", "hidden"),
	"row rule":       {"row", "keep", "each", "where", "set"},
	"group":          {"group", "where", "by", "set"},
	"time bucket":    append(units(), "zone", "epoch"),
	"group value":    append(groupValues(), "round", "max"),
	"each":           {"of", "by"},
	"steps":          {"steps"},
	"latest":         append(slices.Clone(latestKeywords), "by", "where", "to", "also"),
	"stage":          {"when", "where", "to", "each", "who", "max", "set"},
	"follow":         {"follow", "by", "keep"},
	"test":           {"in", "not", "atLeast", "above", "atMost", "below", "between", "begins", "exists"},
	"parameter":      {"param"},
	"migration":      {"rows", "table", "key", "into"},
	"search":         {"of", "where", "text", "filters", "sorts"},
	"query":          {"get", "list", "by", "with", "any", "where", "below", "order", "expired", "then", "unique", "sort", "return", "search"},
	"returned value": {"size", "distinct", "by"},
	"step":           {"get", "list", "by", "with", "any", "where", "below", "order", "expired"},
}

// The words that certain values must be chosen from.
var (
	types = []string{
		string(TypeString), string(TypeNumber), string(TypeBoolean), string(TypeFlag), string(TypeTime), string(TypeBinary),
		string(TypeList), string(TypeMap), string(TypeStrings), string(TypeNumbers), string(TypeCommas), string(TypeAny),
	}
	keyTypeNames = []string{"string", "number", "binary"}
	streams      = []string{"new-and-old-images", "new-image", "keys-only"}
	projections  = []string{"all", "keys"}
	eventNames   = []string{"insert", "modify", "remove"}
	orders       = []string{"newest", "oldest"}
	// records are the names that stand for parts of the record.
	records = []string{"$time", "$position", "$event", "$key", "$old", "$new"}
)
