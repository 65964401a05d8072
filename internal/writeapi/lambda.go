package writeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"weir/internal/web"
)

// errEvent says that an event is neither of HTTP (web.ErrEvent) nor of SQS.
var errEvent = errors.New("the event is neither a request nor messages of SQS")

// Lambda is the write side as a Lambda function: of HTTP events, by the
// same handler that a server has, and of batches of an SQS queue, whose messages are
// commands. HTTP comes as package web reads it: from a function URL, API Gateway or an Application Load Balancer.
//
// A queue's event source mapping needs FunctionResponseTypes ReportBatchItemFailures.
// A message that is refused stays refused: it is answered as failed, so that the
// queue gives it again as often as its redrive policy says and then moves it to its
// dead-letter queue, whole. There it can be looked at; the function's log has the
// reason. A queue without a redrive policy gives it again until its retention ends.
type Lambda struct {
	HTTP http.Handler
	// Queue takes the commands of messages; nil where the function has several models,
	// since a command does not name one.
	Queue Writer
	Log   *slog.Logger
}

// Invoke handles one event: of an HTTP API (either format), a load balancer, or a queue. Work stops before the
// invocation's end (web.InTime), so that there is time to answer. An error that wraps errEvent is about an event of
// another kind; of a queue's event, messages that failed are in the answer, and only these come again.
func (h *Lambda) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var kind struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		}
	}
	if err := json.Unmarshal(payload, &kind); err != nil {
		return nil, fmt.Errorf("%w: %w", errEvent, err)
	}
	if len(kind.Records) > 0 && kind.Records[0].EventSource == "aws:sqs" {
		ctx, cancel := web.InTime(ctx)
		defer cancel()
		return h.queue(ctx, payload)
	}
	out, err := web.AnswerEvent(ctx, h.HTTP, payload)
	if errors.Is(err, web.ErrEvent) {
		err = fmt.Errorf("%w: %w", errEvent, err)
	}
	return out, err
}
