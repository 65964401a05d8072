package runner

import "context"

// Tracer is told of work while it is done, and makes spans of it. A Runner without a Tracer (nil) asks nothing of it, so
// the engine knows neither how spans are kept nor where they go.
type Tracer interface {
	// Begin begins a span within that of the context, and returns the context for all that is done in it. The caller
	// calls end once, with the error of the work, and goes on with the error that end returns: the same one, which
	// logs can tell the trace of (measures.Traced).
	Begin(ctx context.Context, s Span) (_ context.Context, end func(error) error)
	// Applied notes the outcome of records in the span of the context. It returns the id of the span's trace, "" if
	// that is not kept.
	Applied(ctx context.Context, n Result) (trace string)
}

// Span is work that a Tracer is told of.
type Span struct {
	Name  string // SpanBatch and the like
	Model string
	Table string // whose records they are, with commas between several
	Items int    // how many records, documents or rows it is about
}

// The spans. Below each are the rows that it writes, and the calls of the store.
const (
	SpanBatch = "batch" // records of streams, or of a function's event, or rows that a build has read
	SpanIndex = "index" // documents, in a batch
	SpanJob   = "job"   // a step of a long list
)

// RunTraced does work as a span of the runner's model, if there is a Tracer, and returns its error.
func (r *Runner) RunTraced(ctx context.Context, s Span, work func(context.Context) error) error {
	if r.Tracer == nil {
		return work(ctx)
	}
	s.Model = r.Model.Name
	ctx, end := r.Tracer.Begin(ctx, s)
	return end(work(ctx))
}

// AppliedIn notes the outcome of records in the span of the context, and returns the id of its trace.
func (r *Runner) AppliedIn(ctx context.Context, n Result) string {
	if r.Tracer == nil {
		return ""
	}
	return r.Tracer.Applied(ctx, n)
}
