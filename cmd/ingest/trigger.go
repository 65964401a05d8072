package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"weir/internal/cli"
	"weir/internal/drivers"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/system"
	"weir/internal/trigger"
	"weir/internal/value"
)

// triggerCommand makes an event for tests of functions. It needs no tables and writes none.
type triggerCommand struct {
	cli.StageFlags
	Model string `arg:"" help:"Name of a built-in model or path of a model file."`
	Event string `arg:"" help:"ENTITY:insert, ENTITY:modify or ENTITY:remove."`
	Item  string `arg:"" optional:"" help:"Fields of the row, as JSON; those that are missing are invented. Of a modification: the key, if it matters, and what changes."`
}

func (triggerCommand) Help() string {
	return `Prints the event with which Lambda calls a function for one change of one row. The row
is one that ingest put would write: with its keys, defaults and computed attributes.

  ingest trigger gallery AlbumMedia:insert > event.json
  ingest trigger gallery Album:modify '{"id": "a1", "title": "The sea"}'
  ingest trigger gallery Album:remove --stage prod --tables gallery=gallery-prod
  aws lambda invoke --function-name weir-rows --payload fileb://event.json answer.json

Each call prints an event of another stream. A function that counts by position takes the
second one for a repetition of the first, so give each test a table of its own.`
}

// Run writes the row into a store in a temporary directory, which it removes, so it changes nothing
// else.
func (c *triggerCommand) Run(p *program) (err error) {
	entity, change, _ := strings.Cut(c.Event, ":")
	switch trigger.Change(change) {
	case trigger.Insert, trigger.Modify, trigger.Remove:
	default:
		return cli.Usage("%q is no event; one is such as Album:insert, Album:modify or Album:remove", c.Event)
	}
	var item value.Item
	if c.Item != "" {
		if item, err = ingest.ReadItem([]byte(c.Item)); err != nil {
			return cli.Usage("%s: %v", c.Item, err)
		}
	}
	dir, err := os.MkdirTemp("", "weir-trigger-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := cli.Open(p.ctx, drivers.Place{Data: dir}, []string{c.Model}, system.Options{NoSearch: true, Writes: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m := s.Models[0].Model
	names, err := cli.Names(drivers.Place{AWS: true, Stage: c.Deployment()}, []*model.Model{m})
	if err != nil {
		return err
	}
	maker := trigger.Maker{Model: m, Store: s.Store, Now: time.Now, Real: names.Real}
	out, err := maker.Event(p.ctx, entity, trigger.Change(change), item)
	if errors.Is(err, trigger.ErrCannot) {
		return cli.Usage("%v", err)
	}
	if err == nil {
		_, err = p.stdout.Write(out)
	}
	return err
}
