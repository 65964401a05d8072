package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"weir/internal/model"
	"weir/internal/store/dynamodb/dynamodbtest"
)

// Faults of the network and of the service: what is left of weir's speed when a share of the
// answers is lost or refused. Each run is compared with quiet runs right before and after it,
// through the same proxy, because the machine is not as fast all the time.

// fault is a kind of run, and the least share of the quiet speed that it must have.
type fault struct {
	name  string
	is    dynamodbtest.Faults
	least float64
}

var faults = []fault{
	{"0.1 % lost", lostRequests(0.001), 0.90},
	{"0.5 % lost", lostRequests(0.005), 0.80},
	{"2 % lost", lostRequests(0.02), 0.60},
	{"5 % throttled", dynamodbtest.Faults{Throttled: 0.05}, 0.60},
	{"0.5 % silent", dynamodbtest.Faults{Silent: 0.005}, 0},
}

// lostRequests is a share of requests that are dropped, or answered with 500 or 503, half of each.
// Half of each has happened.
func lostRequests(share float64) dynamodbtest.Faults {
	return dynamodbtest.Faults{Dropped: share / 2, Broken: share / 2}
}

// measureFaults prints the shares. It fails if one is too low.
func measureFaults(ctx context.Context, records int) error {
	m, err := model.Load("gallery")
	if err != nil {
		return err
	}
	w := uploadsWorkload(m, records)
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "in\tfaults\tquiet rec/s\trec/s\tshare\tleast\tstruck\tbatches again\t")
	good := true
	for _, way := range []struct {
		name string
		is   way
	}{{"process", applyBatches(m, w, (*world).weirHandler)}, {"process, 64 shards", followShards(m, w, 64)}} {
		for _, f := range faults {
			share, err := w.measureShare(ctx, way.is, f.is)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", way.name, f.name, err)
			}
			good = good && share.shareOfQuiet() >= f.least
			fmt.Fprintf(tw, "%s\t%s\t%.0f\t%.0f\t%.0f %%\t%.0f %%\t%d\t%d\t\n", way.name, f.name, share.quiet, share.faulty, 100*share.shareOfQuiet(), 100*f.least, share.struck, share.again)
			if err := tw.Flush(); err != nil { // each takes a while
				return err
			}
		}
	}
	if !good {
		return fmt.Errorf("shares are too low")
	}
	return nil
}

// share is the speed with faults beside the speed without.
type share struct {
	quiet, faulty float64
	struck        int64
	again         int
}

func (s share) shareOfQuiet() float64 { return s.faulty / s.quiet }

const endpointVariable = "AWS_ENDPOINT_URL_DYNAMODB"

// startProxy starts a proxy in front of the DynamoDB, and has all that comes use it, until end.
func startProxy() (proxy *dynamodbtest.Faulty, end func()) {
	endpoint := os.Getenv(endpointVariable)
	proxy = dynamodbtest.NewFaulty(endpoint, 1)
	os.Setenv(endpointVariable, proxy.URL)
	return proxy, func() { os.Setenv(endpointVariable, endpoint); proxy.Close() }
}

// rounds is how often quiet and faulty runs alternate.
const rounds = 3

// way applies a recording in a world of its own, and recounts. set is called with true before the
// first record, and with false after the last. It adds to again how many batches were applied again.
type way func(ctx context.Context, set func(faulty bool), again *int) (took time.Duration, err error)

// applyBatches applies batch after batch with a handler.
func applyBatches(m *model.Model, w workload, handle func(*world) handler) way {
	return func(ctx context.Context, set func(bool), again *int) (took time.Duration, err error) {
		wd, err := newWorld(ctx, m, w, concurrency)
		if err != nil {
			return 0, err
		}
		defer wd.endWorld()
		set(true)
		start := time.Now()
		err = applyUntilDone(ctx, len(w.records), handle(wd), again)
		took = time.Since(start)
		if set(false); err == nil {
			err = wd.recountTarget(ctx)
		}
		return took, err
	}
}

// followShards has a whole process follow shards, with its lease and checkpoints.
func followShards(m *model.Model, w workload, shards int) way {
	return func(ctx context.Context, set func(bool), again *int) (took time.Duration, err error) {
		s, err := newSharing(ctx, m, w, shards, 0, 10*time.Second)
		if err != nil {
			return 0, err
		}
		defer s.endAll()
		s.startProcess()
		if _, err := s.awaitReader(ctx); err != nil {
			return 0, err
		}
		set(true)
		defer set(false)
		s.stream.showMore()
		took, err = s.awaitApplied(ctx)
		*again += int(s.failed.Load())
		return took, err
	}
}

// measureShare runs a recording with and without faults in turn.
func (w workload) measureShare(ctx context.Context, run way, is dynamodbtest.Faults) (s share, err error) {
	proxy, end := startProxy()
	defer end()
	var took [2]time.Duration
	for i := -1; i <= 2*rounds; i++ { // the first run warms up
		n, err := run(ctx, func(faulty bool) {
			proxy.Set(dynamodbtest.Faults{})
			if faulty && i > 0 && i%2 == 1 {
				proxy.Set(is)
			}
		}, &s.again)
		if err != nil {
			return s, err
		}
		if i >= 0 {
			took[i%2] += n
		}
	}
	s.struck = proxy.Struck.Load()
	n := float64(len(w.records))
	s.quiet, s.faulty = n*(rounds+1)/took[0].Seconds(), n*rounds/took[1].Seconds()
	return s, nil
}

// applyUntilDone applies all batches, and those that fail again after a pause, as processes and
// functions do. It adds to again how often that happened.
func applyUntilDone(ctx context.Context, records int, handle handler, again *int) error {
	const batch = 500
	for at := 0; at < records; {
		if err := handle(ctx, at, min(at+batch, records)); err != nil {
			if ctx.Err() != nil {
				return err
			}
			*again++
			time.Sleep(250 * time.Millisecond)
			continue
		}
		at += batch
	}
	return nil
}
