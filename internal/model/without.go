package model

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Without returns the model that its file is without what is at some paths, each the keys of maps, such as
// "derive" and "Album.mediaCount". Maps that are then empty go too. The error says that there is nothing at the first path, or
// what lint reports of the rest.
func (m *Model) Without(paths ...[]string) (*Model, error) {
	doc := documentOf(m)
	for i, path := range paths {
		switch {
		case nodeAt(doc, path) != nil:
			doc = setAt(doc, path, nil)
		case i == 0:
			return nil, fmt.Errorf("model %s has nothing at %s", m.Name, strings.Join(path, "."))
		}
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return Parse(m.File, text)
}
