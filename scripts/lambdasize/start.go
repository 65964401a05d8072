package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"weir/internal/model"
	"weir/internal/seq"
)

// forty is the model with 40 derivations.
const forty = "scripts/lambdasize/forty.yaml"

// world is the surroundings of the function.
type world struct {
	ctx               context.Context
	binary, projector string
	service           *url.URL // a DynamoDB Local

	proxy    string        // before it, and counts requests
	delay    time.Duration // it holds each of them back for so long
	requests atomic.Int64
}

// newWorld returns the world of a binary, with the program that makes tables built.
func newWorld(ctx context.Context, binary, endpoint string, delay time.Duration) (*world, error) {
	service, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	w := &world{ctx: ctx, binary: binary, projector: filepath.Join(filepath.Dir(binary), "projector"), service: service, delay: delay}
	build := exec.CommandContext(ctx, "go", "build", "-o", w.projector, "./cmd/projector")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.proxy = "http://" + l.Addr().String()
	to := httputil.NewSingleHostReverseProxy(service)
	to.ErrorLog = log.New(io.Discard, "", 0) // requests of a function that was stopped
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.requests.Add(1)
			time.Sleep(w.delay)
			to.ServeHTTP(rw, r)
		}))
	}()
	return w, nil
}

// inEnv is the environment that leads to a service, in which tables are apart by the name.
func inEnv(endpoint, name string) []string {
	return []string{"AWS_ENDPOINT_URL_DYNAMODB=" + endpoint, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS=" + endpoint,
		"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=" + name, "AWS_SECRET_ACCESS_KEY=local"}
}

// deployed are the tables of a model, apart from all others.
type deployed struct {
	env     []string          // of the function
	streams map[string]string // the ARN of each table's stream
}

// deployModel makes the tables of a model.
func (w *world) deployModel(m *model.Model) (d deployed, err error) {
	name := fmt.Sprintf("%s%d", m.Name, time.Now().UnixNano())
	cmd := exec.CommandContext(w.ctx, w.projector, "deploy", "tables", m.Arg, "--aws")
	cmd.Env, cmd.Stderr = append(os.Environ(), inEnv(w.service.String(), name)...), os.Stderr
	if err := cmd.Run(); err != nil {
		return d, fmt.Errorf("deploy tables: %w", err)
	}
	d = deployed{env: append(append(os.Environ(), "WEIR_MODEL="+m.Arg, "WEIR_METRICS=event"), inEnv(w.proxy, name)...), streams: map[string]string{}}
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(w.service.String()), Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider(name, "local", ""),
	})
	for _, t := range m.Tables {
		out, err := client.DescribeTable(w.ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
		if err != nil {
			return d, err
		}
		d.streams[t.Name] = aws.ToString(out.Table.LatestStreamArn)
	}
	return d, nil
}

// coldStarts starts the function so many times for each model, and prints medians.
func (w *world) coldStarts(starts int) error {
	for _, name := range append(model.Builtin(), forty) {
		if err := w.coldStartsOf(name, starts); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// coldStartsOf measures a model. One start goes before: the first of all writes the model's catalog.
func (w *world) coldStartsOf(name string, starts int) error {
	m, err := model.Load(name)
	if err != nil {
		return err
	}
	d, err := w.deployModel(m)
	if err != nil {
		return err
	}
	rows, err := sampleRecords(w.ctx, m, d.streams, 2*(starts+1))
	if err != nil {
		return err
	}
	var all []times
	for i := range starts + 1 {
		f, err := startFunction(w.binary, d.env)
		if err != nil {
			return err
		}
		w.requests.Store(0)
		t, err := w.firstEvents(f, makeEvent(rows[2*i]), makeEvent(rows[2*i+1]))
		log := f.stopFunction()
		if err == nil && countApplied(log) != 2 {
			err = fmt.Errorf("the function does not say that it applied two records")
		}
		if err != nil {
			return fmt.Errorf("%w\n%s", err, log)
		}
		if i > 0 {
			all = append(all, t)
		}
	}
	spread := func(of func(times) int64) string {
		ns := seq.Map(all, of)
		slices.Sort(ns)
		return fmt.Sprintf("%d (%d to %d)", ns[len(ns)/2], ns[0], ns[len(ns)-1])
	}
	fmt.Printf("%s: %d tables, %d derivations\n", m.Name, len(m.Tables), len(m.Derivations()))
	for n, what := range []string{"from the start until it asks for an event", "until the first record is applied", "the second event, of one record"} {
		fmt.Printf("  %-41s %s ms, %s ms of processors, %s requests\n", what, spread(func(t times) int64 { return t[n].wall.Milliseconds() }),
			spread(func(t times) int64 { return t[n].cpu.Milliseconds() }), spread(func(t times) int64 { return t[n].requests }))
	}
	return nil
}

// times are the costs of the start, of the start with the first event, and of the second event.
type times [3]struct {
	wall, cpu time.Duration
	requests  int64 // of the store
}

// noteTimes notes the time that the function has taken since its start.
func (w *world) noteTimes(f *function, t *times, n int) {
	t[n].wall, t[n].cpu, t[n].requests = time.Since(f.began), f.cpuTime(), w.requests.Load()
}

// firstEvents starts the function, whose events are these.
func (w *world) firstEvents(f *function, first, second []byte) (t times, err error) {
	if err := f.awaitReady(); err != nil {
		return t, err
	}
	w.noteTimes(f, &t, 0)
	if err := f.applyEvent(first); err != nil {
		return t, err
	}
	w.noteTimes(f, &t, 1)
	if err := f.awaitReady(); err != nil {
		return t, err
	}
	began := time.Since(f.began)
	if err := f.applyEvent(second); err != nil {
		return t, err
	}
	w.noteTimes(f, &t, 2)
	t[2].wall, t[2].cpu, t[2].requests = t[2].wall-began, t[2].cpu-t[1].cpu, t[2].requests-t[1].requests
	return t, nil
}

const (
	bytesOfRecord = 2000
	functionMB    = 128 // the least that Lambda gives
)

// measureMemory measures the resident memory of the function while it applies events of likes of so many records, of a thousand pictures.
func (w *world) measureMemory(events, records int) error {
	m, err := model.Load("gallery")
	if err != nil {
		return err
	}
	d, err := w.deployModel(m)
	if err != nil {
		return err
	}
	f, err := startFunction(w.binary, append(d.env, fmt.Sprintf("AWS_LAMBDA_FUNCTION_MEMORY_SIZE=%d", functionMB)))
	if err != nil {
		return err
	}
	peak, took, err := f.applyLikes(d.streams["gallery"], events, records)
	log := f.stopFunction()
	if n := countApplied(log); err == nil && n != events*records {
		err = fmt.Errorf("the function says that it applied %d records of %d", n, events*records)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log[max(0, len(log)-2000):])
	}
	fmt.Printf("memory      %d MB at the most, with %d events of %d records of %d bytes, in %.0f s\n", peak>>20, events, records, bytesOfRecord, took.Seconds())
	if peak > functionMB<<20 {
		return fmt.Errorf("the function has %d MB resident, more than %d", peak>>20, functionMB)
	}
	return nil
}

// applyLikes hands over events, and returns the most that the function had resident.
func (f *function) applyLikes(stream string, events, records int) (peak int64, took time.Duration, err error) {
	for i := range events {
		if err := f.awaitReady(); err != nil {
			return 0, 0, err
		}
		of := make([][]byte, records)
		for j := range of {
			of[j] = likeRecord(stream, i*records+j)
		}
		if err := f.applyEvent(makeEvent(of...)); err != nil {
			return 0, 0, err
		}
	}
	peak, err = f.highWater()
	return peak, time.Since(f.began), err
}

// likeRecord is the record of a like, of one of a thousand pictures.
func likeRecord(stream string, n int) []byte {
	keys := fmt.Sprintf(`{"PK":{"S":"USER#u%d"},"SK":{"S":"INTERACTION#like#m%d"}`, n, n%1000)
	row := fmt.Sprintf(`%s,"EntityType":{"S":"UserInteraction"},"userId":{"S":"u%d"},"interactionType":{"S":"like"},"mediaId":{"S":"m%d"},`+
		`"createdAt":{"S":"2026-11-01T00:00:00.000Z"},"note":{"S":"%s"}}`, keys, n, n%1000, strings.Repeat("x", bytesOfRecord-800))
	return makeRecord(stream, 100_000+n, keys+"}", row)
}
