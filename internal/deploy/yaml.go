package deploy

import (
	"bytes"
	"fmt"
	"strconv"
	"weir/internal/seq"

	"go.yaml.in/yaml/v3"
)

type node = *yaml.Node

// entry is an entry of a mapping: mappings keep their order.
type entry struct {
	key   string
	value any // nil leaves the entry out
	about string
}

func is(key string, value any) entry { return entry{key: key, value: value} }

// object is a mapping of entries, each on lines of its own.
// An entry with a nil value is left out, and about is a comment above it.
func object(entries ...entry) node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, e := range entries {
		if e.value == nil {
			continue
		}
		k := scalar(e.key)
		if e.about != "" {
			k.HeadComment = "# " + e.about
		}
		n.Content = append(n.Content, k, nodeOf(e.value))
	}
	return n
}

// list is a sequence, nil without items.
// So an empty list is left out by object.
func list(items ...any) any {
	if len(items) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	n.Content = append(n.Content, seq.Map(items, nodeOf)...)
	return n
}

// putOnOneLine puts a node on one line.
func putOnOneLine(n any) node {
	out := nodeOf(n)
	out.Style |= yaml.FlowStyle
	return out
}

// tagged is one of CloudFormation's functions of a node.
func tagged(name string, n any) node {
	out := *nodeOf(n)
	out.Tag = "!" + name
	out.Style |= yaml.TaggedStyle
	return &out
}

// scalar is a text, whatever it looks like: the library quotes one that would be read as another type.
func scalar(s string) node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// nodeOf is a value in a template. Any other type is a mistake in this package, and panics.
func nodeOf(v any) node {
	switch v := v.(type) {
	case node:
		return v
	case string:
		return scalar(v)
	case int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(v)}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	}
	panic(fmt.Sprintf("deploy: a %T in a template", v))
}

func strings2any(all []string) []any {
	out := make([]any, len(all))
	for i, s := range all {
		out[i] = s
	}
	return out
}

// printed is a document behind a head of comment lines. The same node gives the same bytes.
func printed(head string, n node) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(head)
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}
