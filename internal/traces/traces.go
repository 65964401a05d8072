// Package traces makes OpenTelemetry spans of the engine's work, and sends them by OTLP over HTTP. Only this package
// knows the library: the runner has an interface (runner.Tracer), and a store's driver calls a function
// (store.Observer). Without tracing both are nil.
//
// A trace is a batch: "batch", of the records of streams, of a function's event, or of rows that a build has read.
// Below it is a span "target" for each row that the batch writes, from its first write to its last, and below that a
// span "write" for each write, of the row itself or of weir's rows about it in its own table. Reads, documents for an
// index and steps of long lists are spans of the batch. Work outside a batch, such as leases, has no span.
package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Flag is the flag of a command whose work can be traced.
type Flag struct {
	Traces Mode `enum:"off,otlp" default:"off" help:"Send a trace of each batch, with the rows that it writes, by OTLP over HTTP: off, or otlp, to where the OTEL_EXPORTER_OTLP_… variables say. Spans have the keys of rows (default ${default})."`
}

// Mode is where traces go.
type Mode string

// The modes. "" is Off.
const (
	Off  Mode = "off"
	OTLP Mode = "otlp"
)

// ErrConfig is wrapped by errors of the mode or of the OTEL_… variables.
var ErrConfig = errors.New("traces")

// Tracing makes spans. A nil *Tracing makes none. Its methods may be called concurrently.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// The variables of the environment that decide whether and how spans are sent. The library reads all others.
const (
	envDisabled = "OTEL_SDK_DISABLED"
	envExporter = "OTEL_TRACES_EXPORTER"
)

// envProtocols are the variables that name a protocol; the first that is set holds.
var envProtocols = []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"}

// Open begins to send spans as the mode and the environment say, by the standard variables of OpenTelemetry. It returns
// nil if none are to be sent. service and version name the program (OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go
// before), and log gets the errors of sending, at most once a minute. No request is made. The caller calls Close. An error
// wraps ErrConfig.
func Open(ctx context.Context, mode Mode, service, version string, log *slog.Logger) (*Tracing, error) {
	if mode != OTLP && mode != Off && mode != "" {
		return nil, fmt.Errorf("%w: the mode is %q; it is off or otlp", ErrConfig, mode)
	}
	if mode != OTLP || os.Getenv(envDisabled) == "true" || os.Getenv(envExporter) == "none" {
		return nil, nil
	}
	if is := os.Getenv(envExporter); is != "" && is != "otlp" {
		return nil, fmt.Errorf("%w: %s is %q; weir has otlp and none", ErrConfig, envExporter, is)
	}
	for _, name := range envProtocols {
		if is := os.Getenv(name); is != "" {
			if is != "http/protobuf" {
				return nil, fmt.Errorf("%w: %s is %q; weir sends http/protobuf alone, for which a collector listens at port 4318 as a rule", ErrConfig, name, is)
			}
			break
		}
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	what, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("%w: OTEL_RESOURCE_ATTRIBUTES: %w", ErrConfig, err)
	}
	otel.SetErrorHandler(&failures{log: log})
	return New(sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(what))), nil
}

// New returns a Tracing whose spans go to a provider, which it owns.
func New(p *sdk.TracerProvider) *Tracing {
	return &Tracing{provider: p, tracer: p.Tracer("weir")}
}

// Flush sends the spans that have ended, for at most so long. A function calls it before it answers, since Lambda may
// stop it from then on. Spans that cannot be sent by then are tried again by the next Flush, or dropped.
func (t *Tracing) Flush(ctx context.Context, most time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	if err := t.provider.ForceFlush(ctx); err != nil {
		otel.Handle(err)
	}
}

// closeTime is how long Close waits for spans that have not been sent yet.
const closeTime = 5 * time.Second

// Close sends the rest, for at most closeTime, and ends the sending.
func (t *Tracing) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// failures logs errors of the library.
type failures struct {
	log *slog.Logger

	mu   sync.Mutex
	said time.Time
}

// sayEvery is how often failures are logged at most. A collector that is down fails every few seconds.
const sayEvery = time.Minute

// Handle logs a failure, unless one was logged within sayEvery.
func (f *failures) Handle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); f.said.IsZero() || now.Sub(f.said) >= sayEvery {
		f.said = now
		f.log.Warn("traces cannot be sent; rows are applied all the same", "error", err)
	}
}
