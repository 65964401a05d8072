package query

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/model"
	"weir/internal/value"
)

// Parameter describes a parameter of a query.
type Parameter struct {
	Name     string     `json:"name"`
	Type     model.Type `json:"type"`
	Optional bool       `json:"optional,omitempty"`
	Default  string     `json:"default,omitempty"` // where it is left out
	OneOf    []string   `json:"oneOf,omitempty"`
	List     bool       `json:"list,omitempty"` // values with commas between them

	blank bool        // may be empty
	def   value.Value // Default, Missing for none
}

// The parameters that every search has. Their names are theirs in every search.
const (
	paramText = "q"
	paramSort = "sort"
)

// Parameters describes the parameters of a query, nil when there is no such query.
func (e *Engine) Parameters(name string) []Parameter {
	if p := e.plans[name]; p != nil {
		return p.params
	}
	return nil
}

// Described describes the parameters of a query of a model, in the order of its file; a search has q first and sort last.
func Described(q *model.Query) (ps []Parameter) {
	for _, p := range q.Params {
		ps = append(ps, Parameter{
			Name: p.Name, Type: cmp.Or(p.Type, model.TypeAny), Optional: p.Optional, OneOf: p.OneOf, List: p.List,
			Default: value.Scalar(p.Default), def: p.Default, blank: q.Search != nil && p.Name == paramText,
		})
	}
	return ps
}

// parseArguments reads the parameters as given. All that is wrong is said at once.
// A parameter that is left out has its default, or is not in the result. The result belongs to the
// caller.
func (p *plan) parseArguments(given map[string]string, limit int) (map[string]value.Value, error) {
	var bad []Problem
	say := func(name, format string, args ...any) {
		bad = append(bad, Problem{name, fmt.Sprintf(format, args...)})
	}
	args := make(map[string]value.Value, len(given))
	known := make([]string, len(p.params))
	for i, d := range p.params {
		known[i] = d.Name
		text, ok := given[d.Name]
		if !ok && !d.Optional {
			say(d.Name, "is missing")
		}
		if !ok {
			if !d.def.IsMissing() {
				args[d.Name] = d.def
			}
			continue
		}
		v, err := d.parseAll(text)
		if err != nil {
			say(d.Name, "%v", err)
		}
		args[d.Name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(known, name) {
			continue
		}
		say(name, "is no parameter of this query%s", cmp.Or(model.Meant(name, known), "; it has "+listNames(known)))
	}
	p.checkBeyond(args, say)
	if limit < 0 || limit > MaxLimit {
		say("limit", "must be from 1 to %d, not %d", MaxLimit, limit)
	}
	if bad != nil {
		return nil, &ParameterError{bad}
	}
	return args, nil
}

// listNames is a list of names in a message.
func listNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// parseAll reads a parameter's text; a list's into the list of its values.
// A list, and the values of lists with commas, are read as the elements of such an attribute are: blanks around a
// value do not count. Empty parts of a list are passed over. More than maxListed values are refused, whatever they are.
func (d *Parameter) parseAll(text string) (value.Value, error) {
	if d.Type == model.TypeCommas {
		text = strings.TrimSpace(text)
	}
	if !d.List || text == "" {
		return d.parseText(text)
	}
	var vs []value.Value
	for part := range strings.SplitSeq(text, comma) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		v, err := d.parseText(part)
		if err != nil {
			return v, err
		}
		vs = append(vs, v)
	}
	if len(vs) > maxListed {
		return value.Value{}, fmt.Errorf("has %d values, at most %d are allowed", len(vs), maxListed)
	}
	return value.OfList(vs...), nil
}

// comma stands between the values of a list.
const comma = ","

// maxListed is how many values a list may have.
const maxListed = 1000

// parseText reads a parameter's text.
// The error is a phrase that follows the parameter's name in a message, and quotes at most 60 characters of the text.
func (d *Parameter) parseText(text string) (value.Value, error) {
	switch {
	case text == "" && !d.blank:
		return value.Value{}, errors.New("is empty")
	case !utf8.ValidString(text):
		return value.Value{}, errors.New("is not UTF-8")
	case d.OneOf != nil && !slices.Contains(d.OneOf, text):
		return value.Value{}, fmt.Errorf("must be one of %s, not %.60q", listNames(d.OneOf), text)
	}
	switch d.Type {
	case model.TypeNumber, model.TypeNumbers:
		v, err := value.ParseNumber(text)
		if err != nil {
			return v, fmt.Errorf("must be a number, not %.60q", text)
		}
		return v, nil
	case model.TypeBoolean, model.TypeFlag:
		if text != "true" && text != "false" {
			return value.Value{}, fmt.Errorf("must be true or false, not %.60q", text)
		}
		return value.OfBool(text == "true"), nil
	case model.TypeTime:
		return parseTime(text)
	case model.TypeBinary:
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return value.Value{}, fmt.Errorf("must be base64, not %.60q", text)
		}
		return value.OfBinary(string(raw)), nil
	}
	return value.OfString(text), nil
}

// strictTime refuses texts about which time.Parse is lenient: an hour of one digit and a comma
// in the second are not in the order of text.
var strictTime = regexp.MustCompile(`T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// parseTime takes a time as it is written. One with an offset is turned to UTC,
// which is how times are kept: they are compared as text.
func parseTime(text string) (value.Value, error) {
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return value.OfString(text), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if year := t.UTC().Year(); err != nil || year < 0 || year > 9999 || !strictTime.MatchString(text) {
		return value.Value{}, fmt.Errorf("must be a time such as 2025-11-13T10:30:00Z, not %.60q", text)
	}
	if !strings.HasSuffix(text, "Z") {
		text = t.UTC().Format(time.RFC3339Nano)
	}
	return value.OfString(text), nil
}
