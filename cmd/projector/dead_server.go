package main

import (
	"errors"
	"fmt"
	"net/url"

	"weir/internal/cli"
	"weir/internal/console"
	"weir/internal/web"
)

// With --server, the commands on dead letters ask the console of a running process, which has to read, or to write for a
// retry or a discard. What the model hides is left out.

// asks returns what asks the model's console of the server.
func (t *deadTarget) asks(p *program) (*asker, error) {
	a, err := t.running.asker()
	if err != nil {
		return nil, err
	}
	m, err := cli.LoadModel(p.ctx, t.Model)
	if err != nil {
		return nil, err
	}
	a.below = web.Console + url.PathEscape(m.Name)
	return a, nil
}

// ask prints the dead letters of a server, in the forms that Run prints.
// The server lists as many as its page has; that there are more is said on stderr.
func (c *deadList) ask(p *program, a *asker) error {
	if len(c.Targets) > 0 {
		return usage("with --server, all dead letters are listed: name no rows")
	}
	var all console.Letters
	if _, err := a.get(p.ctx, "/letters.json", nil, &all); err != nil {
		return err
	}
	table, out := newLetterTable(p.stdout), c.to(p.stdout)
	for i := range all.Letters {
		out.add(all.Letters[i], func() { table.add(&all.Letters[i]) })
	}
	table.print(p.stdout)
	if all.More {
		fmt.Fprintf(p.stderr, "there are more than these %d\n", len(all.Letters))
	}
	out.end()
	return nil
}

// ask has a process show the letter, as Run reads it from a store. What the model hides is masked there.
func (c *deadShow) ask(p *program, a *asker) error {
	var is console.Letter
	if _, err := a.get(p.ctx, "/letter.json", url.Values{"id": {c.ID}}, &is); err != nil {
		return err
	}
	return p.showLetter(is)
}

// act has a server do an action on a letter.
func (a *asker) act(p *program, id, action string) (done console.Acted, err error) {
	_, err = a.send(p.ctx, "POST", "/letter.json", url.Values{"id": {id}}, map[string]string{"action": action}, &done)
	return done, err
}

// ask retries one letter, or each of those that the server lists. It ends with exit code 1 if some stay.
func (c *deadRetry) ask(p *program, a *asker) error {
	all := console.Letters{Letters: []console.Letter{{ID: c.ID}}}
	if c.All {
		if _, err := a.get(p.ctx, "/letters.json", nil, &all); err != nil {
			return err
		}
	}
	applied, left := 0, 0
	for _, l := range all.Letters {
		done, err := a.act(p, l.ID, "retry")
		if gone := (*absent)(nil); c.All && errors.As(err, &gone) {
			continue // it went with another one
		}
		if err != nil {
			return cli.Partly(err, applied > 0)
		}
		if applied += done.Applied; done.Why != "" {
			left++
			fmt.Fprintf(p.stderr, "%s: %s\n", l.ID, done.Why)
		}
	}
	fmt.Fprintf(p.stderr, "%d applied, %d dead letters stay\n", applied, left)
	if all.More {
		fmt.Fprintln(p.stderr, "there are more; the same command again goes on")
	}
	if left > 0 || all.More {
		return failed(exitCheck)
	}
	return nil
}

// ask has a process discard the letter. An error leaves the letter as it is.
func (c *deadDiscard) ask(p *program, a *asker) error {
	if _, err := a.act(p, c.ID, "discard"); err != nil {
		return err
	}
	fmt.Fprintln(p.stderr, "discarded")
	return nil
}
