package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// A configuration file says what flags say, for all commands or for one. Of three places that say something, the
// command line comes first, then the environment, then the file.
//
//	data: ./rows        every command that has --data
//	run:                projector run alone
//	  addr: ":8480"
//	dead:
//	  list: {output: json}

// configFlag names the flag of the file.
const configFlag = "config"

// maxConfig is the most bytes of a file.
const maxConfig = 1 << 20

// config is the configuration file of a command line. It is read when the first flag is asked for.
type config struct {
	standard string // the file that is read if none is named; it may be missing
	read     bool
	file     string
	root     *yaml.Node        // a mapping, nil without a file
	said     map[string]string // by flag, the place of what the file says of it
	err      error             // what is wrong with the file
}

// Config is the file that a program reads if --config names none.
func (p *Program) Config() string { return p.Name + ".yaml" }

// Validate is for kong. The file is not known yet.
func (c *config) Validate(*kong.Application) error { return nil }

// Resolve returns what the file says of a flag that the command line does not have: nil for nothing, or if the
// environment says it.
func (c *config) Resolve(k *kong.Context, at *kong.Path, flag *kong.Flag) (any, error) {
	if !c.read {
		c.read = true
		c.err = c.open(k)
	}
	if c.err != nil {
		return nil, c.err
	}
	if c.root == nil || slices.ContainsFunc(flag.Envs, isSet) {
		return nil, nil
	}
	value, where := find(c.root, words(at.Node()), flag.Name)
	if value == nil {
		return nil, nil
	}
	c.said["--"+flag.Name] = fmt.Sprintf("%s:%d", c.file, where)
	return value, nil
}

// isSet reports whether the environment has a variable, also an empty one, as kong does.
func isSet(name string) bool {
	_, is := os.LookupEnv(name)
	return is
}

// words are the names of a command, without the program's.
func words(n *kong.Node) (out []string) {
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		out = append([]string{n.Name}, out...)
	}
	return out
}

// find returns what a file says of a flag for a command, and in which line: the section of the command itself comes
// before those that it is in.
func find(at *yaml.Node, command []string, flag string) (value any, line int) {
	if len(command) > 0 {
		if section := entry(at, command[0], yaml.MappingNode); section != nil {
			if value, line = find(section, command[1:], flag); value != nil {
				return value, line
			}
		}
	}
	n := entry(at, flag, yaml.ScalarNode, yaml.SequenceNode)
	if n == nil {
		return nil, 0
	}
	if n.Kind == yaml.ScalarNode {
		return n.Value, n.Line
	}
	list := []any{}
	for _, e := range n.Content {
		list = append(list, e.Value)
	}
	return list, n.Line
}

// entry returns the entry of a mapping, if it is of one of the kinds. A command and a flag may have one name: the one
// is a mapping, and the other none.
func entry(at *yaml.Node, name string, kinds ...yaml.Kind) *yaml.Node {
	for i := 0; i+1 < len(at.Content); i += 2 {
		if at.Content[i].Value == name && slices.Contains(kinds, at.Content[i+1].Kind) {
			return at.Content[i+1]
		}
	}
	return nil
}

// open reads the file that the command line or the environment names, or else the standard one. All of it has to be
// right, also what another command is told. Errors name the file and the line.
func (c *config) open(k *kong.Context) error {
	for _, f := range k.Flags() {
		if f.Name == configFlag {
			c.file, _ = k.FlagValue(f).(string)
		}
	}
	named := c.file != ""
	if !named {
		c.file = c.standard
	}
	text, err := readConfig(c.file)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		return err
	}
	var doc yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil // an empty file
	case err != nil:
		return fmt.Errorf("%s: %w", c.file, err)
	}
	if c.said = map[string]string{}; len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return fmt.Errorf("%s:1: a configuration is a mapping of flags, and of commands to flags", c.file)
	}
	if err := c.check(doc.Content[0], k.Model.Node); err != nil {
		return err
	}
	c.root = doc.Content[0]
	return nil
}

// readConfig reads a regular file of at most maxConfig bytes.
func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > maxConfig:
		return nil, fmt.Errorf("%s has %d bytes; a configuration has at most %d", path, info.Size(), maxConfig)
	}
	return os.ReadFile(path)
}

// check holds a mapping to the flags of a command and of those below it, and to their names.
// The error names the file and the line. Values are not parsed yet: that is for the flag they belong to.
func (c *config) check(m *yaml.Node, of *kong.Node) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := m.Content[i], m.Content[i+1]
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: %s", c.file, key.Line, fmt.Sprintf(format, args...))
		}
		id := fmt.Sprint(key.Value, value.Kind == yaml.MappingNode)
		if seen[id] {
			return wrong("%s stands here twice", key.Value)
		}
		seen[id] = true
		if value.Kind == yaml.MappingNode {
			i := slices.IndexFunc(of.Children, func(n *kong.Node) bool { return n.Name == key.Value && !n.Hidden })
			if i < 0 {
				return wrong("%s has no command %q", of.FullPath(), key.Value)
			}
			if err := c.check(value, of.Children[i]); err != nil {
				return err
			}
			continue
		}
		switch known, may := flagOf(of, key.Value); {
		case !known:
			return wrong("%s has no flag --%s", of.FullPath(), key.Value)
		case !may:
			return wrong("--%s is for the command line alone: it asks for a single act", key.Value)
		case value.Kind == yaml.SequenceNode && slices.ContainsFunc(value.Content, func(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode }),
			value.Kind != yaml.SequenceNode && (value.Kind != yaml.ScalarNode || value.Tag == "!!null"):
			return wrong("%s is a value, or a list of values", key.Value)
		}
	}
	return nil
}

// flagOf reports whether a command, or one below it, has a flag, and whether a file may say it: those of a single act
// have no variable either, and a file names no other.
func flagOf(n *kong.Node, name string) (known, may bool) {
	for _, f := range n.Flags {
		if f.Name == name && f.Name != "help" {
			known, may = true, may || len(f.Envs) > 0 && name != configFlag
		}
	}
	for _, child := range n.Children {
		k, m := flagOf(child, name)
		known, may = known || k, may || m
	}
	return known, may
}

// mistake is the error of a command line: that of the file as it is, and one about a flag that the file says with the
// place where it does.
func (c *config) mistake(err error) error {
	if c.err != nil {
		return c.err
	}
	for flag, at := range c.said {
		if text := err.Error(); strings.Contains(text, flag+":") || strings.Contains(text, flag+" ") || strings.Contains(text, flag+"=") {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return err
}
