package dynamodb

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/cenkalti/backoff/v4"

	"weir/internal/budget"
	"weir/internal/store"
)

// verdict is whether the request happened, by its error.
type verdict uint8

const (
	// The verdicts, from the one that ends a request to the one that says least.
	final   verdict = iota // it did nothing, and would do nothing again
	nothing                // it did nothing this time
	unknown                // it may have happened
)

// judge classifies the error of a request. After throttling or a failed connection the
// request certainly did nothing. After a server error or a lost answer its outcome is
// unknown. Every other error is final.
// An error that it does not know is final, so that a new kind of refusal is reported and not repeated for ever.
func judge(err error) verdict {
	var api smithy.APIError
	var resp *smithyhttp.ResponseError
	var op *net.OpError
	switch {
	case errors.As(err, &api):
		switch api.ErrorCode() {
		case "ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "Throttling", "ThrottledException",
			"TransactionConflictException", "ReplicatedWriteConflictException", "LimitExceededException", "SlowDown":
			return nothing
		case "InternalServerError", "InternalFailure", "ServiceUnavailable", "TransactionInProgressException", "RequestTimeout", "RequestTimeoutException":
			return unknown
		case "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture":
			return nothing // the SDK signs the next request by the clock of the service
		case "InvalidSignatureException":
			if m := api.ErrorMessage(); strings.Contains(m, "Signature expired") || strings.Contains(m, "Signature not yet current") {
				return nothing
			}
		}
		if errors.As(err, &resp) && resp.HTTPStatusCode() >= 500 {
			return unknown
		}
		return final
	case errors.As(err, &resp) && resp.HTTPStatusCode() >= 500:
		return unknown
	case errors.As(err, &op) && op.Op == "dial":
		return nothing
	}
	var send *smithyhttp.RequestSendError
	var deser *smithy.DeserializationError
	if errors.As(err, &send) || errors.As(err, &deser) {
		return unknown
	}
	return final
}

// causeOf is why a request that failed is sent again.
func causeOf(err error) budget.Cause {
	var api smithy.APIError
	switch {
	case isThrottled(err):
		return budget.CauseThrottled
	case !errors.As(err, &api):
		return budget.CauseConnection
	}
	switch api.ErrorCode() {
	case "TransactionConflictException", "ReplicatedWriteConflictException", "TransactionInProgressException":
		return budget.CauseConflict
	}
	return budget.CauseServer
}

// isThrottled reports whether a request was refused because of its rate.
func isThrottled(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	return throttles(api.ErrorCode())
}

// throttles reports whether a code, of an error or of a reason why a transaction was cancelled,
// says that a rate was too high.
func throttles(code string) bool {
	switch code {
	case "ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "Throttling", "ThrottledException",
		"ProvisionedThroughputExceeded", "ThrottlingError":
		return true
	}
	return false
}

// noteThrottled notes that a write of a row was refused for now.
func (s *Store) noteThrottled(id rowID) {
	s.opts.Writes.Throttled(id.table)
	s.hot.noteRefused(id)
}

// errAgain is the error of a request that did only part of its work, or was cancelled
// by other requests. The rest has not happened.
var errAgain = errors.New("the service has not done everything yet")

// again says when a request with an unknown outcome may be sent again.
type again uint8

const (
	// When a request may be sent again, from the most careful.
	never again = iota
	// later: once the connection has failed or its time is over. Were the first request
	// only late, it could undo writes that came after the second one.
	later
	// soon: also when the answer takes much longer than answers take at present, since
	// most that are late never come.
	soon
)

// sendUntilDone sends a request until it succeeds, its error is final, or the time of
// Options.Patience is over. again says whether a request with an unknown outcome may be
// sent again. Each request has one of the store's slots
// while it runs, and none while it waits. The first pause is a few milliseconds, and none
// is much longer than a second: a pause must not go on when its cause is over.
// The error is that of the last try. It may wrap errAgain if time is over while something is left.
func (s *Store) sendUntilDone(ctx context.Context, again again, request func(context.Context) error) error {
	return s.persistRows(ctx, nil, again, request)
}

// asked returns the answer to a request that is sent as sendUntilDone does.
func asked[In, Out, Options any](ctx context.Context, s *Store, when again, call func(context.Context, *In, ...func(*Options)) (*Out, error), in *In) (out *Out, err error) {
	err = s.sendUntilDone(ctx, when, func(ctx context.Context) (err error) {
		out, err = call(ctx, in)
		return err
	})
	return out, err
}

// persistRows is sendUntilDone of a request that writes these rows. If they are hot, it waits for
// their turn.
func (s *Store) persistRows(ctx context.Context, rows []rowID, again again, request func(context.Context) error) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.5),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(s.opts.Patience))
	tries := 0
	return backoff.Retry(func() error {
		if err := s.hot.await(ctx, rows); err != nil {
			return backoff.Permanent(err)
		}
		if err := s.awaitSlot(ctx); err != nil {
			return backoff.Permanent(err)
		}
		limit := requestTimeout
		if again == soon {
			limit = s.latency.limit(tries)
		}
		tries++
		late, err := s.within(ctx, limit, request)
		s.releaseSlot()
		switch {
		case err == nil:
			s.hot.noteTaken(rows)
			return nil
		case errors.Is(err, errAgain):
			s.opts.Writes.Again(budget.CauseConflict)
			return err
		case ctx.Err() != nil:
			return backoff.Permanent(errors.Join(ctx.Err(), err))
		case late && again != never:
			s.opts.Writes.Again(budget.CauseLate)
			return err
		}
		if isThrottled(err) {
			for _, id := range rows {
				s.noteThrottled(id)
			}
		}
		if v := judge(err); v == nothing || v == unknown && again != never {
			s.opts.Writes.Again(causeOf(err))
			return err
		}
		return backoff.Permanent(err)
	}, backoff.WithContext(b, ctx))
}

// within does a request, and gives it up after a time; late says that this time was over.
func (s *Store) within(ctx context.Context, limit time.Duration, request func(context.Context) error) (late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	if err = request(ctx); err == nil {
		s.latency.updateMean(time.Since(start))
	}
	return ctx.Err() != nil, err
}

// latency is how long answers take at present.
type latency struct{ mean atomic.Int64 }

// An answer is late after lateAfter times the mean, but not before leastLimit: answers of
// a store that is near and idle vary more. Each further try waits twice as long, for the
// store may have become slow.
const (
	lateAfter  = 20
	leastLimit = 250 * time.Millisecond
	firstLimit = 2 * time.Second // before there was an answer
)

// updateMean updates the running mean with one observation; each counts for 1/32. Several goroutines
// may call it.
func (l *latency) updateMean(d time.Duration) {
	for {
		was := l.mean.Load()
		is := was + (int64(d)-was)/32
		if was == 0 {
			is = int64(d)
		}
		if l.mean.CompareAndSwap(was, is) {
			return
		}
	}
}

// limit is how long a request is waited for that was sent so many times before.
func (l *latency) limit(tries int) time.Duration {
	limit := firstLimit
	if mean := l.mean.Load(); mean > 0 {
		limit = max(leastLimit, lateAfter*time.Duration(mean))
	}
	return min(limit<<min(tries, 6), requestTimeout)
}

// named is the error of this package's contract for a final error of a request; nil for
// an error that does not say whether the request happened.
func named(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return nil
	}
	switch api.ErrorCode() {
	case "ConditionalCheckFailedException":
		return store.ErrCondition
	case "ValidationException", "ItemCollectionSizeLimitExceededException":
		return &serviceError{store.ErrRefused, api.ErrorMessage()}
	case "ResourceNotFoundException":
		return &serviceError{store.ErrNoTable, api.ErrorMessage()}
	case "TransactionConflictException":
		return &serviceError{store.ErrConflict, api.ErrorMessage()}
	}
	return nil
}

// serviceError is one of the contract's errors with the message of the service.
type serviceError struct {
	kind error
	said string
}

// Error says the contract's words first, then the service's. errors.Is finds the contract's error.
func (e *serviceError) Error() string { return e.kind.Error() + ": " + e.said }
func (e *serviceError) Unwrap() error { return e.kind }

// standing is the row for which a condition failed, if it was asked for.
func standing(err error) attributes {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) && len(failed.Item) > 0 {
		return failed.Item
	}
	return nil
}
