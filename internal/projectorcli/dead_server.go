package projectorcli

import (
	"net/url"

	"weir/internal/cli"
	"weir/internal/console"
	"weir/internal/web"
)

// remote are the dead letters of a running process, which the commands have with --server. Its console has to read, or to
// write for a retry or a discard. Hidden values are left out.
type remote struct {
	*program
	*asker
}

// asks returns an asker of the model's console on the server.
func (t *deadTarget) asks(p *program) (*remote, error) {
	a, err := t.running.newAsker()
	if err != nil {
		return nil, err
	}
	m, err := cli.LoadModel(p.ctx, t.Model)
	if err != nil {
		return nil, err
	}
	a.below = web.Console + url.PathEscape(m.Name)
	return &remote{p, a}, nil
}

// eachLetter hands over the letters that a page of the console reads.
func (l *remote) eachLetter(do func(console.Letter) error) (more bool, err error) {
	var all console.Letters
	if _, err := l.getJSON(l.ctx, "/letters.json", nil, &all); err != nil {
		return false, err
	}
	for _, one := range all.Letters {
		if err := do(one); err != nil {
			return false, err
		}
	}
	return all.More, nil
}

func (l *remote) readLetter(id string) (is console.Letter, err error) {
	_, err = l.getJSON(l.ctx, "/letter.json", url.Values{"id": {id}}, &is)
	return is, err
}

func (l *remote) actOn(id, action string) (done console.Acted, err error) {
	_, err = l.send(l.ctx, "POST", "/letter.json", url.Values{"id": {id}}, map[string]string{"action": action}, &done)
	return done, err
}

// The process does both by itself.
func (l *remote) startModel() error { return nil }
func (l *remote) settleRows() error { return nil }
