package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"
	"github.com/opensearch-project/opensearch-go/v2/opensearchtransport"

	"weir/internal/search"
)

// server is the cluster as the rest of the package uses it.
type server struct {
	client   opensearchtransport.Interface // not opensearch.Client, which links every API there is: 1.5 MB
	http     *http.Transport
	keyed    *keyed // nil without a secret
	patience time.Duration
}

// attemptTime is how long one request may take before it is sent again.
const attemptTime = 60 * time.Second

// newClient makes a client of the cluster. It sends nothing yet.
func newClient(ctx context.Context, t Target, patience time.Duration) (*server, error) {
	base := http.DefaultTransport.(*http.Transport).Clone()
	var transport http.RoundTripper = base
	var login *keyed
	var err error
	switch {
	case t.Region != "":
		transport, err = newSigner(ctx, base, t.Region, t.Service)
	case t.Secret != "":
		login, err = newKeyed(ctx, base, t.User, t.Secret)
		transport, t.User = login, ""
	}
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("OpenSearch at %s: %w", t.Shown(), err)
	}
	client, err := opensearchtransport.New(opensearchtransport.Config{
		URLs: []*url.URL{at}, Username: t.User, Password: t.Password,
		Transport:    transport,
		DisableRetry: true, // see callUntilAnswered and applyChanges
	})
	if err != nil {
		return nil, fmt.Errorf("OpenSearch at %s: %w", t.Shown(), err)
	}
	return &server{client: client, http: base, keyed: login, patience: patience}, nil
}

// close closes connections that are idle. Requests in progress end by their contexts.
func (s *server) close() { s.http.CloseIdleConnections() }

// ErrUnreachable is wrapped by the error for a cluster from which no answer came.
var ErrUnreachable = errors.New("does not answer; is this the right URL, and does the cluster run?")

// reachTime is how long the first answer may take, whatever it says.
const reachTime = 10 * time.Second

// awaitAnswer waits for any answer at all. After a refused connection it tries twice more,
// because the cluster may be about to listen.
func (s *server) awaitAnswer(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	err := backoff.Retry(func() error {
		err := s.sendOnce(within, nil, opensearchapi.PingRequest{})
		var a *AnswerError
		if errors.As(err, &a) {
			return nil
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(backoff.NewConstantBackOff(500*time.Millisecond), 2), within))
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w (%w)", ErrUnreachable, err)
}

// AnswerError is an answer of the cluster that reports a failure.
type AnswerError struct {
	Status int
	Type   string // OpenSearch's name of the error
	Reason string
}

// Error is the cluster's words, with the status and, if it gives one, the type.
func (e *AnswerError) Error() string {
	if e.Type == "" {
		return fmt.Sprintf("OpenSearch answers %d %s", e.Status, e.Reason)
	}
	return fmt.Sprintf("OpenSearch answers %d %s: %s", e.Status, e.Type, e.Reason)
}

// Is reports whether the answer says that an index is gone (search.ErrGone).
func (e *AnswerError) Is(target error) bool {
	return target == search.ErrGone && e.Type == "index_not_found_exception"
}

// isStatus reports whether the cluster answered with this status.
func isStatus(err error, status int) bool {
	var a *AnswerError
	return errors.As(err, &a) && a.Status == status
}

// isType reports whether the cluster answered with an error of this type.
func isType(err error, typ string) bool {
	var a *AnswerError
	return errors.As(err, &a) && a.Type == typ
}

// passing reports whether a later request may get another answer.
func passing(status int) bool { return status == http.StatusTooManyRequests || status >= 500 }

// callUntilAnswered sends a request until it has a final answer, and reads the answer into out. Use
// it only for requests that may be sent twice.
func (s *server) callUntilAnswered(ctx context.Context, out any, request func() opensearchapi.Request) error {
	return backoff.Retry(func() error {
		err := s.sendOnce(ctx, out, request())
		var a *AnswerError
		if ctx.Err() != nil || errors.As(err, &a) && !passing(a.Status) {
			return backoff.Permanent(err)
		}
		return err
	}, tries(ctx, s.patience))
}

// sendOnce sends a request. After an error that is not an AnswerError, the request may have
// been carried out or not.
func (s *server) sendOnce(ctx context.Context, out any, r opensearchapi.Request) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	res, err := r.Do(ctx, s.client)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return fmt.Errorf("reading OpenSearch's answer: %w", err)
	case res.StatusCode >= 300:
		return answerError(res.StatusCode, body)
	case out == nil:
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(out); err != nil {
		return fmt.Errorf("OpenSearch's answer: %w", err)
	}
	return nil
}

// maxReason is the length to which a reason is cut.
const maxReason = 500

// answerError keeps status, type and reason of a refused request; of a body that is not
// OpenSearch's (a proxy's) the beginning.
func answerError(status int, body []byte) *AnswerError {
	var full struct{ Error cause }
	if json.Unmarshal(body, &full) == nil && full.Error.Type != "" {
		return full.Error.answer(status)
	}
	return &AnswerError{Status: status, Reason: string(body[:min(len(body), maxReason)])}
}

// cause is an error in OpenSearch's format.
type cause struct {
	Type      string  `json:"type"`
	Reason    string  `json:"reason"`
	CausedBy  *cause  `json:"caused_by"`
	RootCause []cause `json:"root_cause"`
}

// answer is the error with its inmost reason, cut to maxReason bytes: the outer one often says only
// that all shards failed.
func (c *cause) answer(status int) *AnswerError {
	a := &AnswerError{Status: status, Type: c.Type, Reason: c.Reason}
	inner := c.CausedBy
	if inner == nil && len(c.RootCause) > 0 && c.RootCause[0].Reason != c.Reason {
		inner = &c.RootCause[0]
	}
	if inner != nil {
		a.Reason += ": " + inner.Reason
	}
	if len(a.Reason) > maxReason {
		a.Reason = a.Reason[:maxReason]
	}
	return a
}
