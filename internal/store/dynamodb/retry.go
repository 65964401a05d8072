package dynamodb

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/cenkalti/backoff/v4"

	"weir/internal/store"
)

// verdict is what an error says about whether the request happened.
type verdict uint8

const (
	final   verdict = iota // it did nothing, and would do nothing again
	nothing                // it did nothing this time
	unknown                // it may have happened
)

// judge classifies the error of a request. After throttling or a failed connection the
// request certainly did nothing. After a server error or a lost answer its outcome is
// unknown. Every other error is final.
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

// errAgain is the error of a request that did only part of its work, or was cancelled
// by other requests. What is left has not happened.
var errAgain = errors.New("the service has not done everything yet")

// persist sends a request until it succeeds, its error is final, or the time of
// Options.Patience is over. repeatable says that a request with an unknown outcome may
// be sent again. Each request has one of the store's slots while it runs, and none
// while it waits.
func (s *Store) persist(ctx context.Context, repeatable bool, request func(context.Context) error) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(25*time.Millisecond), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.5),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(s.opts.Patience))
	return backoff.Retry(func() error {
		if err := s.slot(ctx); err != nil {
			return backoff.Permanent(err)
		}
		err := request(ctx)
		s.release()
		switch {
		case err == nil || errors.Is(err, errAgain):
			return err
		case ctx.Err() != nil:
			return backoff.Permanent(errors.Join(ctx.Err(), err))
		}
		if v := judge(err); v == nothing || v == unknown && repeatable {
			return err
		}
		return backoff.Permanent(err)
	}, backoff.WithContext(b, ctx))
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
