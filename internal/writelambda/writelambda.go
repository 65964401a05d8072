// Package writelambda is the write side as a Lambda function: of HTTP events, by the
// same handler that a server has, and of batches of an SQS queue, whose messages are
// commands.
//
// HTTP comes from a function URL, an API Gateway HTTP API (payload 2.0 and 1.0), an
// API Gateway REST API or an Application Load Balancer.
//
// A queue's event source mapping needs FunctionResponseTypes ReportBatchItemFailures.
// A message that is refused stays refused: it is answered as failed, so that the
// queue gives it again as often as its redrive policy says and then moves it to its
// dead-letter queue, whole. There it can be looked at; the function's log has the
// reason. A queue without a redrive policy gives it again until its retention ends.
package writelambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"weir/internal/writeapi"
)

// ErrEvent says that an event is neither of HTTP nor of SQS.
var ErrEvent = errors.New("the event is not one of a function URL, of API Gateway, of a load balancer or of SQS")

// Handler handles the events of a function.
type Handler struct {
	HTTP http.Handler
	// Queue takes the commands of messages; nil where the function has several models,
	// since a command does not name one.
	Queue writeapi.Writer
	Log   *slog.Logger
}

// margin is what is left of an invocation's time when the work stops: enough to
// answer.
func margin(left time.Duration) time.Duration { return min(time.Second, left/5) }

// Invoke handles one event: of an HTTP API (either format), a load balancer, or a queue. Work stops a
// second, or a fifth of the time, before the invocation's end, so that there is time to answer. An error
// that wraps ErrEvent is about an event of another kind; of a queue's event, messages that failed are in
// the answer, and only these come again.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var kind struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		}
		HTTPMethod     string `json:"httpMethod"`
		RequestContext struct {
			HTTP struct {
				Method string `json:"method"`
			} `json:"http"`
			ELB json.RawMessage `json:"elb"`
		} `json:"requestContext"`
	}
	if err := json.Unmarshal(payload, &kind); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-margin(time.Until(deadline))))
		defer cancel()
	}
	switch {
	case kind.RequestContext.HTTP.Method != "":
		return h.http2(ctx, payload)
	case kind.HTTPMethod != "" && kind.RequestContext.ELB != nil:
		return h.balanced(ctx, payload)
	case kind.HTTPMethod != "":
		return h.http1(ctx, payload)
	case len(kind.Records) > 0 && kind.Records[0].EventSource == "aws:sqs":
		return h.queue(ctx, payload)
	}
	return nil, fmt.Errorf("%w: %.200q", ErrEvent, payload)
}
