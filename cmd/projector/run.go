package main

import (
	"errors"

	"weir/internal/system"
)

type runCommand struct {
	data
	Models []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
	Addr   string   `default:"127.0.0.1:8480" placeholder:"HOST:PORT" help:"Where queries are served (default ${default})."`
}

func (runCommand) Help() string {
	return `Serves GET /v1/{model}/{query}?key=value&limit=&cursor= and follows the streams of
the models' tables until it is interrupted.

  projector run gallery wardrobe --addr 127.0.0.1:8480
  curl 'http://127.0.0.1:8480/v1/gallery/albums?limit=3'`
}

func (c *runCommand) Run(p *program) error {
	s, err := p.open(c.data, c.Models, system.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	return errors.New("not yet")
}
