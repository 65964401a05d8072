package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

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
	if _, err := c.settle(r, r.PathValue("id"), action); Stays(err) {
		return c.showLetter(r, http.StatusConflict, "It is still a dead letter: "+c.refusal(r, err), false)
	} else if err != nil {
		return err
	}
	return r.done(r.path("/dead"))
}

// settle retries a dead letter or discards it, by the name of the action. See stays for the error of a retry.
func (c *Console) settle(r *request, id, action string) (applied int, err error) {
	switch action {
	case "retry":
		applied, err = Retry(r.ctx, c.system, r.part, id)
	case "discard":
		err = r.part.Runner.Discard(r.ctx, id)
	default:
		return 0, errNoAction
	}
	return applied, noLetter(err)
}

// noLetter returns an error of the runner, or what says of it that there is no such letter.
func noLetter(err error) error {
	if errors.Is(err, runner.ErrNoDead) {
		return errNoLetter
	}
	return err
}

// Stays reports whether a retry failed because of the letter, not because of a service.
func Stays(err error) bool {
	return errors.Is(err, store.ErrRefused) || errors.Is(err, runner.ErrNoRetry) || errors.Is(err, runner.ErrStands)
}

// refusal says why a letter stays. The error may quote a value that the model hides.
func (c *Console) refusal(r *request, err error) string {
	return brief(r.part.Model.ShownText(err.Error()), longRunes)
}

// Retry applies a dead letter of a model again: one of a record that a replay could not use as that replay would now. It
// returns how much was applied, also with an error.
func Retry(ctx context.Context, s *system.System, part *system.Part, id string) (applied int, err error) {
	d, err := part.Runner.DeadByID(ctx, id)
	if err != nil {
		return 0, err
	}
	if d.Kind != runner.DeadRecord {
		if err := part.Runner.Retry(ctx, id); err != nil {
			return 0, err
		}
		return 1, nil
	}
	again := replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner, Names: s.Names}
	err = again.Retry(ctx, &d)
	return again.Summary.Applied, err
}

// RetryAll retries each dead letter once, in the order of their ids, and returns how much was applied and how many stay. It calls
// stays for each of these, with the reason. An error of a service ends it, and so does the time until, unless it is zero.
func RetryAll(ctx context.Context, s *system.System, part *system.Part, until time.Time, stays func(id string, why error)) (applied, left int, err error) {
	err = part.Runner.Dead(ctx, func(d runner.Dead) error {
		if !until.IsZero() && time.Now().After(until) {
			return errEnough
		}
		n, err := Retry(ctx, s, part, d.ID)
		applied += n
		switch {
		case errors.Is(err, runner.ErrNoDead): // it went with another one
			return nil
		case Stays(err):
			left++
			stays(d.ID, err)
			return nil
		}
		return err
	})
	return applied, left, err
}

// retryTime is how long retrying all goes on. Another click goes on with what is left.
const retryTime = 12 * time.Second

// retryAll retries each dead letter once, in the order of their ids.
// A letter that stays does not end it. An error of a service does. Letters that were done before it
// stay done, and another click continues with the others.
func (c *Console) retryAll(r *request) error {
	if r.PostForm.Get("action") != "retry" {
		return errNoAction
	}
	applied, left, err := RetryAll(r.ctx, c.system, r.part, time.Now().Add(retryTime), func(string, error) {})
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
