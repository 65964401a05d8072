package model

import "regexp"

// nameRule says which names a thing can have.
type nameRule struct {
	pattern *regexp.Regexp
	most    int            // bytes, 0 for any number
	is      string         // the meaning of pattern and most, for messages
	like    string         // an example, as a hint
	ours    *regexp.Regexp // names that weir keeps for itself, nil for none
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	entityName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	kebabName  = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	tableName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
)

// nameRules are the rules of names, by the thing named. Names of models, searches, migrations and queries are in commands,
// URLs, and keys of our own table. Those of tables and indexes are by DynamoDB's rules. Signs that a name of an attribute
// cannot have mean something else in a model.
var nameRules = map[string]nameRule{
	"model":     {kebabName, 64, "small letters, digits and single hyphens, at most 64", "like photo-album", nil},
	"migration": {kebabName, 64, "small letters, digits and single hyphens, at most 64", "like v1", nil},
	"search":    {kebabName, 0, "small letters, digits and single hyphens", "like albums", nil},
	"query":     {kebabName, 0, "small letters, digits and single hyphens", "like albums-by-creator", nil},
	"entity":    {entityName, 0, "letters and digits", "like Album", nil},
	"table":     {tableName, 0, "3 to 255 letters, digits, dots, hyphens and underscores", "", regexp.MustCompile(`^weir$`)},
	"index":     {tableName, 0, "3 to 255 letters, digits, dots, hyphens and underscores", "", nil},
	"attribute": {
		regexp.MustCompile(`^[^{}\[\]=?$ \t\n]*$`), 255, "at most 255 bytes without blanks and {}[]=?$", "", regexp.MustCompile(`^weir(\.|$)`),
	},
}
