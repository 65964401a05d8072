// Package models holds the model files that come with the program, and the JSON
// Schema of the language they are written in.
package models

import "embed"

// Files holds NAME.yaml for each built-in model, and schema.json.
//
//go:embed *.yaml schema.json
var Files embed.FS
