package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ParseTables reads a map of tables: a JSON object of real names by logical names, or
// NAME=REAL, separated by commas or line ends. The names are in the order of the text. A
// text without any is refused, because it is more likely a variable that is not set than
// a map; {} is none.
func ParseTables(text string) ([]Pair, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return parseObject(text)
	}
	var out []Pair
	for i, line := range strings.Split(text, "\n") {
		for _, item := range strings.Split(line, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			logical, real, ok := strings.Cut(item, "=")
			if !ok {
				return nil, atLine(text, i, fmt.Errorf("%.80q is not NAME=REAL, the model's name of a table and its name in the store", item))
			}
			p, err := pair(strings.TrimSpace(logical), strings.TrimSpace(real))
			if err != nil {
				return nil, atLine(text, i, err)
			}
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the map of tables is empty; leave it out if all tables have the model's names")
	}
	return out, nil
}

// atLine adds the line to an error, if the text has several.
func atLine(text string, i int, err error) error {
	if !strings.Contains(strings.TrimSpace(text), "\n") {
		return err
	}
	return fmt.Errorf("line %d: %w", i+1, err)
}

// parseObject reads the object by its tokens, because a name that comes twice must not
// be lost.
func parseObject(text string) (out []Pair, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	wrong := func(err error) error {
		line := 1 + strings.Count(text[:min(len(text), int(d.InputOffset()))], "\n")
		return fmt.Errorf("line %d: the map is not a JSON object of names such as {\"NAME\": \"REAL\"}: %w", line, err)
	}
	if _, err := d.Token(); err != nil { // the brace
		return nil, wrong(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, wrong(err)
		}
		v, err := d.Token()
		if err != nil {
			return nil, wrong(err)
		}
		real, ok := v.(string)
		if !ok {
			return nil, wrong(fmt.Errorf("/%v is not a string", key))
		}
		p, err := pair(fmt.Sprint(key), real)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if _, err := d.Token(); err != nil {
		return nil, wrong(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, wrong(errors.New("something follows the object"))
	}
	return out, nil
}

// pair is a pair of names that tables may have.
func pair(logical, real string) (Pair, error) {
	switch {
	case !realName.MatchString(logical):
		return Pair{}, fmt.Errorf("no table of a model has the name %.80q, which is mapped to %.80q", logical, real)
	case strings.HasPrefix(real, "arn:"):
		return Pair{}, fmt.Errorf("the table %s is mapped to the ARN %.300q; give the table's name, which is what follows :table/ in it", logical, real)
	case !realName.MatchString(real):
		return Pair{}, fmt.Errorf("the table %s is mapped to %.80q; DynamoDB allows names of 3 to 255 letters, digits, dots, hyphens and underscores", logical, real)
	}
	return Pair{logical, real}, nil
}
