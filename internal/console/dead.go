package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/value"
)

// deadPage lists dead letters of one kind, or of all.
type deadPage struct {
	Kinds   []deadKind
	Kind    string
	Letters []deadLine
	More    bool // there are more than were read
	Read    int
	All     string
	Done    string // the outcome of an action
	Failed  bool   // it came to less than it should
}

// deadKind is a kind of dead letters in the list of kinds, with how many of those that were read it
// has.
type deadKind struct {
	link
	Count int
}

// deadLine is a dead letter as a line of the list. Its reason is cut to 160 characters and has no
// value that the model hides.
type deadLine struct {
	ID     link
	Kind   string
	Target string
	Reason string
	Time   string
}

// A page reads at most readLetters dead letters and lists pageLetters.
const (
	readLetters = 2000
	pageLetters = 200
)

var errEnough = errors.New("enough")

// showLetters lists the dead letters of a model: GET /console/{model}/dead. The parameter kind chooses those of
// one kind.
func (c *Console) showLetters(r *request) error { return c.listLetters(r, http.StatusOK, "") }

// listLetters shows dead letters, and the outcome of an action.
// Counts are those of the first readLetters letters; More says that there are others. Nothing is changed by listing.
func (c *Console) listLetters(r *request, status int, done string) error {
	p := deadPage{Kind: r.param("kind"), All: r.path("/dead"), Done: done, Failed: status != http.StatusOK}
	counts := map[string]int{}
	var err error
	p.Read, p.More, err = r.eachLetter(func(d *deadletter.Letter) error {
		counts[string(d.Kind)]++
		if p.Kind != "" && p.Kind != string(d.Kind) || len(p.Letters) == pageLetters {
			return nil
		}
		target := d.Target
		if d.Kind == deadletter.Image && d.Row.Table != "" {
			target += " from " + r.part.Runner.DescribeRow(d.Row)
		}
		p.Letters = append(p.Letters, r.letterLine(d, d.ID, target, 160))
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		p.Kinds = append(p.Kinds, deadKind{link{k, r.path("/dead", "kind", k), k == p.Kind}, counts[k]})
	}
	return r.renderPage(status, "dead", "Dead letters", &p)
}

// eachLetter hands over dead letters until do has enough, at most readLetters. more reports whether there may be others.
func (r *request) eachLetter(do func(*deadletter.Letter) error) (read int, more bool, err error) {
	err = r.part.Runner.EachDeadLetter(r.ctx, func(d deadletter.Letter) error {
		if read == readLetters {
			return errEnough
		}
		read++
		return do(&d)
	})
	if errors.Is(err, errEnough) {
		return read, true, nil
	}
	return read, false, err
}

// letterLine is a line of a list of dead letters, with a link to the letter. Its reason is cut to so many characters.
func (r *request) letterLine(d *deadletter.Letter, text, target string, most int) deadLine {
	return deadLine{
		ID: link{Text: text, Href: r.path("/dead/" + url.PathEscape(d.ID))}, Kind: string(d.Kind), Target: brief(target, cellRunes),
		Reason: brief(d.Shown(r.part.Model).Reason, most), Time: stamp(&d.Time),
	}
}

// letterPage is one dead letter.
type letterPage struct {
	Letter
	Row                           *link
	Time, Record, Command, Action string
	Done                          string // the result of an action
	Sure                          bool   // it is asked whether to discard it
}

// showOneLetter shows one dead letter: GET /console/{model}/dead/{id}. One that has been retried or discarded
// meanwhile is not found.
func (c *Console) showOneLetter(r *request) error { return c.showLetter(r, http.StatusOK, "", false) }

// showLetter shows a letter with the outcome of an action, or with the question whether to discard it.
// Hidden values of the model are left out.
// It reads one letter and writes nothing; a letter that is gone meanwhile is errNoLetter.
func (c *Console) showLetter(r *request, status int, done string, sure bool) error {
	d, err := r.part.Runner.DeadByID(r.ctx, r.PathValue("id"))
	if err != nil {
		return noLetter(err)
	}
	d = d.Shown(r.part.Model)
	p := letterPage{
		Letter: LetterOf(r.part.Model, &d), Time: stamp(&d.Time), Command: r.part.Model.Command("dead retry", d.ID),
		Action: r.path("/dead/" + url.PathEscape(d.ID)), Done: done, Sure: sure,
	}
	if r.part.Model.Table(d.Row.Table) != nil {
		l := rowLink(r.part.Model, d.Row)
		p.Row = &l
	}
	if p.Record = brief(d.Raw, longRunes); len(d.Record) > 0 {
		p.Record = recordText(&d)
	}
	return r.renderPage(status, "letter", "Dead letter "+d.ID, &p)
}

// recordText writes a letter's record in lines.
func recordText(d *deadletter.Letter) string {
	rec := d.ChangeRecord()
	return imageText("keys", rec.Keys) + imageText("old", rec.Old) + imageText("new", rec.New)
}

// imageText is an image in lines of name and value, with the values in DynamoDB's JSON; "" for an
// image that the record lacks.
func imageText(name string, it value.Item) string {
	if it == nil {
		return ""
	}
	out := name + "\n"
	for _, a := range it {
		out += "  " + brief(a.Name, cellRunes) + "  " + brief(string(value.AppendTyped(nil, a.Value)), longRunes) + "\n"
	}
	return out
}
