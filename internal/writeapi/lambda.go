package writeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/web"
)

// ErrEvent says that an event is neither of HTTP (web.ErrEvent) nor of SQS.
var ErrEvent = errors.New("the event is neither a request nor messages of SQS")

// Lambda is the API as a Lambda function: of HTTP events, as package web reads them, by the same handler that a server
// has, and of batches of an SQS queue, whose messages are commands.
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
	Model *model.Model // of Queue; the log has nothing that it hides
	Log   *slog.Logger
}

// Invoke handles one event: of an HTTP API (either format), a load balancer, or a queue. Work stops before the
// invocation's end (web.InTime), so that there is time to answer. An error that wraps ErrEvent is about an event of
// another kind; of a queue's event, messages that failed are in the answer, and only these come again.
func (h *Lambda) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var kind struct {
		Records []struct {
			EventSource string `json:"eventSource"`
		}
	}
	if err := json.Unmarshal(payload, &kind); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if len(kind.Records) > 0 && kind.Records[0].EventSource == "aws:sqs" {
		ctx, cancel := web.InTime(ctx)
		defer cancel()
		return h.queue(ctx, payload)
	}
	out, err := web.AnswerEvent(ctx, h.HTTP, payload)
	if errors.Is(err, web.ErrEvent) {
		err = fmt.Errorf("%w: %w", ErrEvent, err)
	}
	return out, err
}

// message is one message of a queue, and its outcome.
type message struct {
	*events.SQSMessage
	command ingest.Command
	failed  error
}

// queue does the commands of a batch of messages and answers with those that failed.
// An error is of the whole batch, and nothing of it was done; the failure of one message is in the answer, and Lambda
// delivers that message again.
func (h *Lambda) queue(ctx context.Context, payload []byte) ([]byte, error) {
	if h.Queue == nil {
		return nil, errors.New("messages of a queue name no model, and this function has several; give it one in WEIR_MODEL")
	}
	var e events.SQSEvent
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	all := make([]*message, len(e.Records))
	for i := range e.Records {
		if e.Records[i].MessageId == "" {
			return nil, fmt.Errorf("%w: a message has no id", ErrEvent)
		}
		all[i] = readMessage(&e.Records[i])
	}
	stopped := map[string]bool{}
	for _, some := range rounds(all) {
		h.do(ctx, some, stopped)
	}
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, m := range all {
		if m.failed != nil {
			if refusal := (*ingest.Refusal)(nil); errors.As(m.failed, &refusal) && h.Model != nil {
				m.failed = refusal.Shown(h.Model)
			}
			h.Log.Warn("a message is not done", "message", m.MessageId, "op", string(m.command.Op), "entity", m.command.Entity,
				"received", m.Attributes["ApproximateReceiveCount"], "error", m.failed)
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return json.Marshal(out)
}

// readMessage takes a message's command. A queue gives a message more than once: one without
// an idempotency key has its message's id for it.
func readMessage(m *events.SQSMessage) *message {
	out := &message{SQSMessage: m}
	if out.command, out.failed = ingest.ReadCommand([]byte(m.Body)); out.failed == nil && out.command.IdempotencyKey == "" {
		out.command.IdempotencyKey = "sqs:" + m.MessageId
	}
	return out
}

// group is the messages that are to be done in their order: of a FIFO queue those of
// one group, of any other each for itself.
func (m *message) group() string {
	if strings.HasSuffix(m.EventSourceARN, ".fifo") {
		return m.Attributes["MessageGroupId"]
	}
	return m.MessageId
}

// errBehind is of messages that come after one of their group that is not done.
var errBehind = errors.New("it waits for a message before it in its group")

// rounds are messages that are done together, one round after the other. Each group
// has one message in a round.
func rounds(all []*message) (out [][]*message) {
	n := map[string]int{}
	for _, m := range all {
		at := n[m.group()]
		if n[m.group()]++; at == len(out) {
			out = append(out, nil)
		}
		out[at] = append(out[at], m)
	}
	return out
}

// do does a round, but for messages of groups that stopped.
func (h *Lambda) do(ctx context.Context, some []*message, stopped map[string]bool) {
	var cs []ingest.Command
	var of []*message
	for _, m := range some {
		switch {
		case stopped[m.group()]:
			m.failed = errBehind
		case m.failed == nil:
			cs, of = append(cs, m.command), append(of, m)
		}
	}
	if len(cs) > 0 {
		for i, res := range Do(ctx, h.Queue, cs) {
			of[i].failed = res.Err
		}
	}
	for _, m := range some {
		stopped[m.group()] = stopped[m.group()] || m.failed != nil
	}
}
