package main

import (
	"bufio"
	"strings"

	"weir/internal/query"
	"weir/internal/system"
	"weir/internal/value"
)

type queryCommand struct {
	data
	Model  string   `arg:"" help:"Name of a built-in model or path of a model file."`
	Name   string   `arg:"" help:"Name of the query."`
	Params []string `arg:"" optional:"" name:"key=value" help:"Parameters of the query; limit= and sort= too."`
}

func (queryCommand) Help() string {
	return `Prints every row of the answer, one JSON object a line, all pages.

  projector query gallery album albumId=a1
  projector query gallery search-albums q="summer beach"
  projector query wardrobe user-items userId=u1 category=dresses`
}

func (c *queryCommand) Run(p *program) error {
	params := map[string]string{}
	for _, kv := range c.Params {
		key, v, ok := strings.Cut(kv, "=")
		if !ok {
			return usage("%q is not key=value", kv)
		}
		if _, twice := params[key]; twice {
			return usage("%s is given twice", key)
		}
		params[key] = v
	}
	s, err := p.existing(c.data, []string{c.Model}, system.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Fill(p.ctx, nil); err != nil {
		return err
	}
	out := bufio.NewWriter(p.stdout)
	defer out.Flush()
	page := query.Page{}
	var line []byte
	for {
		res, err := s.Models[0].Query.Run(p.ctx, c.Name, params, page)
		if err != nil {
			return err
		}
		for _, row := range res.Items {
			line = append(value.AppendPlainItem(line[:0], row), '\n')
			if _, err := out.Write(line); err != nil {
				return err
			}
		}
		if page.Cursor = res.Cursor; page.Cursor == "" {
			return out.Flush()
		}
	}
}
