package traces

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"weir/internal/measures"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/stage"
	"weir/internal/store"
)

// maxSpans is how many spans a batch has below it at most. Its attribute weir.spans_left_out says how many more there
// would be. A batch of 1,000 records may write as many rows, and the library drops spans that its queue (2,048 spans, unless
// OTEL_BSP_MAX_QUEUE_SIZE says another number) cannot take.
const maxSpans = 1000

// batch is a span of the runner that is not over, with the rows that are written in it.
type batch struct {
	span trace.Span

	mu             sync.Mutex
	targets        map[string]context.Context // of the spans of rows, by the text of the row
	spans, leftOut int
}

// batchKey is the key of the batch of a context.
type batchKey struct{}

// Begin begins a span for work of the runner. See runner.Tracer. The function that it returns ends the
// span and gives back the error, which then names the trace, so that a log line can. A span without a parent
// is that of a consumer. Where the trace is not sampled, nothing else is kept.
func (t *Tracing) Begin(ctx context.Context, s runner.Span) (context.Context, func(error) error) {
	kind := trace.SpanKindInternal
	if !trace.SpanContextFromContext(ctx).IsValid() {
		kind = trace.SpanKindConsumer
	}
	ctx, span := t.tracer.Start(ctx, s.Name, trace.WithSpanKind(kind))
	if !span.IsRecording() {
		return context.WithValue(ctx, batchKey{}, (*batch)(nil)), func(err error) error { return err }
	}
	span.SetAttributes(attribute.String("weir.model", s.Model), attribute.Int("weir.items", s.Items))
	if s.Table != "" {
		span.SetAttributes(attribute.String("weir.table", s.Table))
	}
	b := &batch{span: span, targets: map[string]context.Context{}}
	return context.WithValue(ctx, batchKey{}, b), func(err error) error {
		b.end(err)
		if err == nil {
			return nil
		}
		return &measures.Traced{Err: err, Trace: span.SpanContext().TraceID().String()}
	}
}

// Applied notes the outcome of records. See runner.Tracer.
func (t *Tracing) Applied(ctx context.Context, n runner.Result) string {
	b, _ := ctx.Value(batchKey{}).(*batch)
	if b == nil {
		return ""
	}
	b.span.AddEvent("applied", trace.WithAttributes(
		attribute.Int("weir.applied", n.Applied), attribute.Int("weir.skipped", n.Skipped), attribute.Int("weir.dead", n.Dead)))
	return b.span.SpanContext().TraceID().String()
}

// end ends the spans of the rows, and then that of the batch.
func (b *batch) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ctx := range b.targets {
		trace.SpanFromContext(ctx).End()
	}
	b.span.SetAttributes(attribute.Int("weir.targets", len(b.targets)))
	if b.leftOut > 0 {
		b.span.SetAttributes(attribute.Int("weir.spans_left_out", b.leftOut))
	}
	endSpan(b.span, err)
}

// endSpan ends a span with the outcome of its work.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Observer returns the observer of a driver's calls, under the names of a deployment's tables; nil without tracing.
func (t *Tracing) Observer(n stage.Names) store.Observer {
	if t == nil {
		return nil
	}
	return func(ctx context.Context, c store.Call) (context.Context, func(error)) {
		b, _ := ctx.Value(batchKey{}).(*batch)
		if b == nil {
			return ctx, func(error) {}
		}
		if len(c.Of) == 0 {
			return t.read(ctx, b, &n, c)
		}
		return t.write(ctx, b, &n, c)
	}
}

// takeRoom takes room for so many spans. It is false if there is none.
func (b *batch) takeRoom(spans int) bool {
	if b.spans+spans > maxSpans {
		b.leftOut += spans
		return false
	}
	b.spans += spans
	return true
}

// read begins the span of a call that reads.
func (t *Tracing) read(ctx context.Context, b *batch, n *stage.Names, c store.Call) (context.Context, func(error)) {
	b.mu.Lock()
	ok := b.takeRoom(1)
	b.mu.Unlock()
	if !ok {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, string(c.Method), trace.WithSpanKind(trace.SpanKindClient))
	if c.Table != "" {
		span.SetAttributes(attribute.String("weir.table", logical(n, c.Table)))
	} else {
		span.SetAttributes(attribute.Int("weir.items", c.Rows))
	}
	return ctx, func(err error) { endSpan(span, err) }
}

// written is a span of a write, and the write.
type written struct {
	span trace.Span
	at   int // of Call.Of
}

// write begins a span for each write of a call, below that of the row that it is for.
// The caller calls the function that it gets with the error of the call, once. Beyond the batch's room for spans, writes have
// none; the batch says how many were left out.
func (t *Tracing) write(ctx context.Context, b *batch, n *stage.Names, c store.Call) (context.Context, func(error)) {
	var spans []written
	b.mu.Lock()
	for i := range c.Of {
		w := &c.Of[i]
		kind, row := subject(n, w.Ref)
		under := ctx
		if row != "" {
			if under = t.target(ctx, b, row); under == nil {
				continue
			}
		}
		if !b.takeRoom(1) {
			continue
		}
		_, span := t.tracer.Start(under, "write", trace.WithSpanKind(trace.SpanKindClient))
		span.SetAttributes(attribute.String("weir.table", logical(n, w.Table)), attribute.String("weir.write", does(w)))
		if kind != "" {
			span.SetAttributes(attribute.String("weir.row", kind))
		}
		if c.Method == store.IsTransact {
			span.SetAttributes(attribute.Int("weir.transaction", len(c.Of)))
		}
		spans = append(spans, written{span, i})
	}
	b.mu.Unlock()
	return ctx, func(err error) {
		for _, s := range spans {
			s.endSpan(c, err)
		}
	}
}

// endSpan ends the span of a write. A condition that does not hold is an answer and no failure: the runner counts on it.
func (s *written) endSpan(c store.Call, err error) {
	if s.at < len(c.Out) && c.Out[s.at].Err != nil {
		err = c.Out[s.at].Err
	}
	is := "done"
	switch {
	case errors.Is(err, store.ErrCondition):
		is, err = "condition", nil
	case errors.Is(err, store.ErrConflict):
		is, err = "conflict", nil
	case errors.Is(err, store.ErrRefused):
		is = "refused"
	case err != nil:
		is = "unknown"
	}
	s.span.SetAttributes(attribute.String("weir.outcome", is))
	endSpan(s.span, err)
}

// target returns the context of the span of a row, which begins with the row's first write; nil if there is no room for
// it. The caller has the lock.
func (t *Tracing) target(ctx context.Context, b *batch, row string) context.Context {
	is, ok := b.targets[row]
	if ok {
		return is
	}
	if !b.takeRoom(1) {
		return nil
	}
	is, span := t.tracer.Start(trace.ContextWithSpan(ctx, b.span), "target")
	table, _, _ := strings.Cut(row, "|")
	span.SetAttributes(attribute.String("weir.table", table), attribute.String("weir.target", row))
	b.targets[row] = is
	return is
}

// subject returns, for a row of our own table, its meaning (owntable.DescribePartition), and for every row the text of the row that
// its write is for, "" if that is none.
func subject(n *stage.Names, r store.Ref) (kind, row string) {
	if r.Table == n.Own() {
		return owntable.DescribePartition(r.Key.Partition.Text())
	}
	r.Table = logical(n, r.Table)
	return "", owntable.RowText(r)
}

// logical is the name that the model has for a table.
func logical(n *stage.Names, table string) string {
	if table == n.Own() {
		return owntable.TableName
	}
	if name, err := n.Logical(table); err == nil {
		return name
	}
	return table
}

// does names the work of a write.
func does(w *store.Write) string {
	switch {
	case w.Check:
		return "check"
	case w.Put != nil:
		return "put"
	case w.Delete:
		return "delete"
	}
	return "update"
}
