package writeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/web"
)

// maxCommands is how many commands a batch may have.
const maxCommands = 1000

// linesTypes are the media types of commands one a line. Each is in use somewhere, and all mean the same.
var linesTypes = []string{"application/jsonl", "application/x-ndjson", "application/json-lines"}

// outcome is the outcome of one command of a batch.
// Either Problem is set, or the command was done.
type outcome struct {
	Status   int          `json:"status"` // as it would be by itself
	Done     ingest.Done  `json:"done,omitempty"`
	Repeated bool         `json:"repeated,omitempty"`
	Location string       `json:"location,omitempty"`
	Revision string       `json:"revision,omitempty"`
	Problem  *web.Problem `json:"problem,omitempty"`
}

// answerBatch answers for many commands: an array of them, or one a line.
// The answer is 200 also where commands failed: results has one outcome for each command, in its order. The rate is
// spent for each command, so that a batch gives no advantage.
func (a *API) answerBatch(w http.ResponseWriter, r *http.Request) {
	t := a.target(r.PathValue("model"))
	switch {
	case t == nil:
		a.noModel(w, r)
		return
	case r.Method != http.MethodPost:
		web.NotAllowed(w, r, allowedBatch)
		return
	case !web.Spend(w, r, 1):
		return
	}
	texts, err := splitCommands(w, r)
	if err != nil {
		a.answerError(w, r, err)
		return
	}
	if !web.Spend(w, r, len(texts)-1) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxSeconds*time.Second)
	defer cancel()
	web.WriteJSON(w, map[string][]outcome{"results": shortened(a.each(ctx, t, texts))})
}

// shortened leaves out mistakes beyond MaxMistakes of all commands together, and counts them.
func shortened(out []outcome) []outcome {
	left := web.MaxMistakes
	for i := range out {
		p := out[i].Problem
		if p == nil {
			continue
		}
		if all, _ := p.Errors.([]mistake); len(all) > left {
			p.Errors, p.More = all[:left:left], p.More+len(all)-left
			if left == 0 {
				p.Errors = nil
			}
			left = 0
		} else {
			left -= len(all)
		}
	}
	return out
}

// each does the commands that can be read, and answers for all.
// The result has as many elements as texts, in their order. A command that cannot be read stops no other.
func (a *API) each(ctx context.Context, t *target, texts []json.RawMessage) []outcome {
	out := make([]outcome, len(texts))
	var cs []ingest.Command
	var at []int
	for i, text := range texts {
		c, err := ingest.ReadCommand(text)
		switch {
		case err != nil:
			out[i] = a.answerOutcome(t, c, ingest.Result{Err: malformed(t.Model, err)})
		case t.entity(c.Entity) == nil:
			p := web.ProblemOf(http.StatusNotFound, "not-found", fmt.Sprintf("there is no entity %.100q in model %s that may be written", c.Entity, t.Model.Name))
			p.Detail += model.Meant(c.Entity, t.names)
			out[i] = outcome{Status: p.Status, Problem: p}
		default:
			cs, at = append(cs, c), append(at, i)
		}
	}
	if len(cs) > 0 {
		for i, res := range Do(ctx, t.Writer, cs) {
			out[at[i]] = a.answerOutcome(t, cs[i], res)
		}
	}
	return out
}

// answerOutcome answers with the outcome of a command, with the status that it would have by itself. An error of the store is
// logged; the client learns only that it may send the command again.
func (a *API) answerOutcome(t *target, c ingest.Command, res ingest.Result) outcome {
	var p *web.Problem
	switch err := res.Err.(type) {
	case nil:
		if isGone(c.Op, res) {
			p = gone()
			return outcome{Status: p.Status, Repeated: true, Problem: p}
		}
		o := outcome{Status: statusOf(res), Done: res.Done, Repeated: res.Repeated, Revision: res.Revision}
		if e := t.entity(c.Entity); res.Row != nil {
			o.Location = e.location(t.Model.Name, res.Row)
		}
		return o
	case *refused:
		p = err.problem
	case *ingest.Refusal:
		p = problemOf(err, "/item")
	default:
		a.talk.Log.Warn("a command cannot be done now", "model", t.Model.Name, "entity", c.Entity, "error", err)
		p = web.ProblemOf(http.StatusServiceUnavailable, "unavailable", "whether it was written is not known; send it again")
	}
	return outcome{Status: p.Status, Problem: p}
}

// splitCommands takes a batch apart.
// Of an array each element has to be an object, which is checked before anything is done. Lines may be anything:
// each is answered for by itself. Empty lines are passed over.
func splitCommands(w http.ResponseWriter, r *http.Request) (texts []json.RawMessage, err error) {
	if len(r.Header.Values("Idempotency-Key")) > 0 || len(r.Header.Values("If-Match")) > 0 {
		return nil, newRefusal(http.StatusBadRequest, "header", "a batch has no Idempotency-Key and no If-Match; each command has its own, idempotencyKey and ifMatch")
	}
	body, given, err := read(w, r, append([]string{"application/json"}, linesTypes...))
	if err != nil {
		return nil, err
	}
	if given == "application/json" {
		if err := json.Unmarshal(body, &texts); err != nil || texts == nil {
			return nil, notAnArray(err)
		}
		if i := slices.IndexFunc(texts, func(t json.RawMessage) bool { return t[0] != '{' }); i >= 0 {
			return nil, newRefusal(http.StatusUnprocessableEntity, "invalid", "the body must be an array of commands",
				mistake{Pointer: ingest.Pointer(strconv.Itoa(i)), Message: "must be a command: an object"})
		}
	} else {
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				texts = append(texts, line)
			}
		}
	}
	if len(texts) > maxCommands {
		return nil, newRefusal(http.StatusUnprocessableEntity, "too-many", fmt.Sprintf("%d commands are too many at once; %d are possible", len(texts), maxCommands))
	}
	return texts, nil
}

// notAnArray is the refusal of a body that is no array: 400 for a text that is no JSON, 422 for other JSON.
func notAnArray(err error) error {
	if syntax, ok := err.(*json.SyntaxError); ok {
		return newRefusal(http.StatusBadRequest, "not-json", fmt.Sprintf("the body is not JSON at byte %d: %v", syntax.Offset, err))
	}
	return newRefusal(http.StatusUnprocessableEntity, "invalid", "the body must be an array of commands")
}
