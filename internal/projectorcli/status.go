package projectorcli

import (
	"encoding/json"
	"fmt"
	"net/url"

	"weir/internal/cli"
	"weir/internal/model"
	"weir/internal/status"
	"weir/internal/system"
)

// statusCommand prints the catalog. It only reads, and may run beside any process.
type statusCommand struct {
	data
	output
	running
	Model string `arg:"" help:"Name of a built-in model, path of a model file, or name of a model whose file is gone."`
}

func (statusCommand) Help() string {
	return `Prints the tables of the model as weir knows them, who reads their streams and how far
behind the end they are, and every derivation with its state, generation, definition and
the time since when. For search indexes, it lists every definition that has one.
A lag is the age of the oldest record that is not applied. Of a build, it prints the
units that it has used and will have used, and their price. It looks at the first rows of
each table, and says how many count for targets that do not exist.
If this program and model would be refused, or the stream of a table is off, it says
why, and exits with 1.
Of a model whose file is gone it prints what the catalog has.

  projector status gallery --data ./data
  projector status gallery --aws -o json`
}

// A program that would be refused, or of which a table stands still, still prints the status, and then ends with
// exit code 1.
func (c *statusCommand) Run(p *program) error {
	st, err := c.read(p)
	if err != nil {
		return err
	}
	if c.Output != "text" {
		json.NewEncoder(p.stdout).Encode(st)
	} else {
		st.Write(messages{p, p.stdout})
	}
	if c.Output == "text" && st.Refused != "" {
		fmt.Fprintf(p.stderr, "would be refused: %s\n", st.Refused)
	}
	still := false
	for _, t := range st.Tables {
		if t.Off == "" {
			continue
		}
		if still = true; c.Output == "text" && t.Off != st.Refused {
			fmt.Fprintln(p.stderr, t.Off)
		}
	}
	if st.Refused != "" || still {
		return failed(exitCheck)
	}
	return nil
}

// read reads the status from the rows, or asks a server that has them.
func (c *statusCommand) read(p *program) (st status.Status, err error) {
	if c.Server == "" {
		s, gone, err := p.named(c.data, c.Model, system.Options{})
		if err == nil {
			defer s.Close()
			if gone {
				fmt.Fprintf(p.stderr, "there is no file of model %s here: this is what its catalog has\n", c.Model)
			}
			return status.Of(p.ctx, s, s.Models[0])
		}
		if !c.found(err, c.data) {
			return st, err
		}
	}
	a, err := c.newAsker()
	if err != nil {
		return st, err
	}
	m, err := cli.LoadModel(p.ctx, c.Model)
	if err != nil {
		return st, err
	}
	_, err = a.getJSON(p.ctx, "/v1/"+url.PathEscape(m.Name)+"/"+model.StatusPath, nil, &st)
	return st, err
}
