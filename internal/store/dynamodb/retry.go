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

// verdict is what an error says about the request.
type verdict uint8

const (
	final   verdict = iota // it did nothing and would do nothing again
	nothing                // it did nothing this time
	unknown                // it may have happened
)

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

// errAgain is what a request answers that did only part of its work, or was
// cancelled by others: nothing of what is left happened.
var errAgain = errors.New("the service has not done everything yet")

// persist does a request until it is done, its error is final, or patience ends.
// repeatable says that one whose outcome is unknown may be sent again. Each
// request has one of the store's slots while it runs, and none while it waits.
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

// named is a final error of a request as this package's callers know it; nil for
// one that says nothing about whether it happened.
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

// serviceError is one of the store's errors with what the service said.
type serviceError struct {
	kind error
	said string
}

func (e *serviceError) Error() string { return e.kind.Error() + ": " + e.said }
func (e *serviceError) Unwrap() error { return e.kind }

// standing is the row that a condition failed for, where it was asked for.
func standing(err error) attributes {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) && len(failed.Item) > 0 {
		return failed.Item
	}
	return nil
}
