package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"time"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/value"
	"weir/internal/web"
)

// For programs, such as projector dead --server, there are the same dead letters as JSON, under the same keys and with
// the same values left out as on the pages:
//
//	GET  /console/{model}/letters.json          the first of them
//	GET  /console/{model}/letter.json?id=ID     one
//	POST /console/{model}/letter.json?id=ID     {"action": "retry"} or {"action": "discard"}

// Letter is a dead letter as programs read it. Its JSON is a format that scripts rely on: names do not change, and a field that
// is unknown is left out.
type Letter struct {
	ID   string          `json:"id"`
	Kind deadletter.Kind `json:"kind"`
	// Target is for its target, in words: a row, a rule, an index.
	Target string `json:"target"`
	// Row is the row that the target is, or that cannot be used; empty if it is none of the model's tables.
	Row    string `json:"row,omitempty"`
	Reason string `json:"reason"`
	Source string `json:"source,omitempty"`
	// Position is the sequence number of the record, and Time its time in RFC 3339; either may be
	// unknown.
	Position string `json:"position,omitempty"`
	Time     string `json:"time,omitempty"`
	// Adds has the amounts that a ledger refused, as people read them; Record the record in DynamoDB's
	// JSON; Raw the bytes of one that could not be decoded.
	Adds   []string        `json:"adds,omitempty"`
	Record json.RawMessage `json:"record,omitempty"`
	Raw    string          `json:"raw,omitempty"`
	// Cut has size and hash of a part that was too large to keep.
	Cut string `json:"cut,omitempty"`
	// Expires is when the record or the bytes are deleted, or were.
	Expires string `json:"expires,omitempty"`
}

// LetterOf makes it from a dead letter, without hidden values. Times are in UTC; a record is shown with the types of its values, as
// DynamoDB's own JSON has them, so that nothing is lost.
func LetterOf(m *model.Model, d *deadletter.Letter) Letter {
	shown := d.Shown(m)
	d = &shown
	s := Letter{ID: d.ID, Kind: d.Kind, Target: d.Target, Reason: d.Reason, Source: d.Source, Raw: d.Raw, Cut: d.Cut}
	if m.Table(d.Row.Table) != nil {
		s.Row = runner.RowText(m, d.Row)
	}
	for _, a := range d.Adds {
		s.Adds = append(s.Adds, a.Field+" "+a.Amount.Text())
	}
	if !d.Position.IsZero() {
		s.Position = d.Position.String()
	}
	if !d.Time.IsZero() && d.Time.Unix() != 0 {
		s.Time = d.Time.Format("2006-01-02T15:04:05Z")
	}
	if !d.Until.IsZero() {
		s.Expires = d.Until.Format(time.RFC3339)
	}
	if len(d.Record) > 0 {
		s.Record = value.AppendTypedItem(nil, d.Record)
	}
	return s
}

// From says which row cannot be used, or else from where the letter is.
func (l *Letter) From() string {
	if l.Kind == deadletter.Image && l.Row != "" {
		return l.Row
	}
	return cmp.Or(l.Source, l.Position)
}

// Letters are the first dead letters of a model, at most as many as a page reads. More says that there are others.
type Letters struct {
	Letters []Letter `json:"letters"`
	More    bool     `json:"more"`
}

// writeJSON writes JSON.
func (r *request) writeJSON(what any) error {
	setHeaders(r.w, "application/json")
	if err := json.NewEncoder(r.w).Encode(what); err != nil {
		return http.ErrAbortHandler
	}
	return nil
}

// asJSON makes a problem of the caller's mistake, where a page would say it.
func asJSON(h func(*request) error) func(*request) error {
	return func(r *request) error {
		err := h(r)
		if m := (*mistake)(nil); errors.As(err, &m) {
			web.ProblemOf(m.status, "mistake", m.text).Write(r.w)
			return nil
		}
		return err
	}
}

// answerLetters answers with the dead letters of a model.
func (c *Console) answerLetters(r *request) error {
	out := Letters{Letters: []Letter{}}
	var err error
	_, out.More, err = r.eachLetter(func(d *deadletter.Letter) error {
		out.Letters = append(out.Letters, LetterOf(r.part.Model, d))
		return nil
	})
	if err != nil {
		return err
	}
	return r.writeJSON(&out)
}

// oneLetter answers with one dead letter.
func (c *Console) oneLetter(r *request) error {
	d, err := r.part.Runner.DeadByID(r.ctx, r.param("id"))
	if err != nil {
		return noLetter(err)
	}
	return r.writeJSON(LetterOf(r.part.Model, &d))
}

// command has h do an action of a program, one at a time, if the console may act. No page of another origin can send
// it: its body is JSON, which a form cannot be, and a browser that says from where it comes has to say this origin.
func (c *Console) command(h func(r *request, action string) error) func(*request) error {
	return func(r *request) error {
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		var asked struct {
			Action string `json:"action"`
		}
		switch {
		case !c.options.Write:
			return errReadsOnly
		case kind != "application/json" || http.NewCrossOriginProtection().Check(r.Request) != nil:
			return &mistake{http.StatusForbidden, "An action is JSON, and not of a page of another origin."}
		}
		if err := json.NewDecoder(http.MaxBytesReader(r.w, r.Body, 4<<10)).Decode(&asked); err != nil {
			return &mistake{http.StatusBadRequest, "The body is no JSON."}
		}
		return c.alone(r, asked.Action, func() error { return h(r, asked.Action) })
	}
}

// onLetter retries or discards a dead letter.
func (c *Console) onLetter(r *request, action string) error {
	done, err := Act(r.ctx, c.system, r.part, r.param("id"), action)
	if err != nil {
		return noLetter(err)
	}
	return r.writeJSON(&done)
}
