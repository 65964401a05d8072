package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"weir/internal/deadletter"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/system"
)

// actOnLetter retries a dead letter, or discards it once that was confirmed.
// A letter that is refused again is 409 and stays as it was. One that another reader has settled
// meanwhile is 404.
func (c *Console) actOnLetter(r *request) error {
	action := r.PostForm.Get("action")
	if action == "discard" && r.PostForm.Get("sure") != "yes" {
		return c.showLetter(r, http.StatusOK, "", true)
	}
	if done, err := Act(r.ctx, c.system, r.part, r.PathValue("id"), action); err != nil {
		return noLetter(err)
	} else if done.Why != "" {
		return c.showLetter(r, http.StatusConflict, "It is still a dead letter: "+done.Why, false)
	}
	return r.redirectTo(r.path("/dead"))
}

// Acted is the result of an action on a letter. Why is why the letter stays, "" if it does not.
type Acted struct {
	Applied int    `json:"applied"`
	Why     string `json:"why,omitempty"`
}

// Act retries a dead letter or discards it, by the name of the action. That a letter stays after a retry is no error.
func Act(ctx context.Context, s *system.System, part *system.Part, id, action string) (done Acted, err error) {
	switch action {
	case "retry":
		done.Applied, err = retryLetter(ctx, s, part, id)
	case "discard":
		err = part.Runner.DiscardLetter(ctx, id)
	default:
		return done, errNoAction
	}
	if errors.Is(err, store.ErrRefused) || errors.Is(err, deadletter.ErrNoRetry) || errors.Is(err, runner.ErrStands) {
		done.Why, err = brief(part.Model.ShownText(err.Error()), longRunes), nil // it may quote a value that the model hides
	}
	return done, err
}

// noLetter returns an error of the runner, or errNoLetter if there is no such letter.
func noLetter(err error) error {
	if errors.Is(err, deadletter.ErrNoDead) {
		return errNoLetter
	}
	return err
}

// retryLetter applies a dead letter of a model again: one of a record that a replay could not use as that replay would now. It
// returns how much was applied, also with an error.
func retryLetter(ctx context.Context, s *system.System, part *system.Part, id string) (applied int, err error) {
	d, err := part.Runner.DeadByID(ctx, id)
	if err != nil {
		return 0, err
	}
	if d.Kind != deadletter.Record {
		if err := part.Runner.RetryLetter(ctx, id); err != nil {
			return 0, err
		}
		return 1, nil
	}
	again := replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner, Names: s.Names}
	err = again.Retry(ctx, &d)
	return again.Summary.Applied, err
}

// retryTime is how long retrying all goes on. Another click goes on with the rest.
const retryTime = 12 * time.Second

// retryAll retries each dead letter once, in the order of their ids.
// A letter that stays does not end it. An error of a service does. Letters that were done before it
// stay done, and another click continues with the others.
func (c *Console) retryAll(r *request) error {
	if r.PostForm.Get("action") != "retry" {
		return errNoAction
	}
	applied, left, until := 0, 0, time.Now().Add(retryTime)
	err := r.part.Runner.EachDeadLetter(r.ctx, func(d deadletter.Letter) error {
		if time.Now().After(until) {
			return errEnough
		}
		done, err := Act(r.ctx, c.system, r.part, d.ID, "retry")
		if applied += done.Applied; done.Why != "" {
			left++
		}
		if errors.Is(err, deadletter.ErrNoDead) { // it went with another one
			return nil
		}
		return err
	})
	text := fmt.Sprintf("%d applied, %d stay.", applied, left)
	status := http.StatusOK
	switch {
	case errors.Is(err, errEnough):
		text += " Not all were tried: retry all once more to go on."
	case errors.Is(err, context.DeadlineExceeded), err != nil && applied > 0:
		c.options.Log.Warn("retrying dead letters broke off", "model", r.part.Model.Name, "error", err)
		text, status = text+" It broke off, as the log says; retry all once more to go on.", http.StatusServiceUnavailable
	case err != nil:
		return err
	}
	if status == http.StatusServiceUnavailable {
		var cancel context.CancelFunc
		r.ctx, cancel = context.WithTimeout(r.Context(), maxSeconds*time.Second)
		defer cancel()
	}
	return c.listLetters(r, status, text)
}
