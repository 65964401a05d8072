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
	{"0.1 % lost", lost(0.001), 0.90},
	{"0.5 % lost", lost(0.005), 0.80},
	{"2 % lost", lost(0.02), 0.60},
	{"5 % throttled", dynamodbtest.Faults{Throttled: 0.05}, 0.60},
	{"0.5 % silent", dynamodbtest.Faults{Silent: 0.005}, 0},
}

// lost is a share of answers that are dropped, or are a 500, half of each.
func lost(share float64) dynamodbtest.Faults {
	return dynamodbtest.Faults{Dropped: share / 2, Broken: share / 2}
}

// measureFaults prints the shares. It fails if one is too low.
func measureFaults(ctx context.Context, records int) error {
	m, err := model.Load("gallery")
	if err != nil {
		return err
	}
	w := uploads(m, records)
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "in\tfaults\tquiet rec/s\trec/s\tshare\tleast\tstruck\tbatches again\t")
	good := true
	for _, way := range []struct {
		name string
		new  func(*world) handler
	}{{"process", (*world).weir}, {"function", (*world).byItem}} {
		for _, f := range faults {
			share, err := w.share(ctx, m, way.new, f.is)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", way.name, f.name, err)
			}
			good = good && share.of() >= f.least
			fmt.Fprintf(tw, "%s\t%s\t%.0f\t%.0f\t%.0f %%\t%.0f %%\t%d\t%d\t\n", way.name, f.name, share.quiet, share.faulty, 100*share.of(), 100*f.least, share.struck, share.again)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
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

func (s share) of() float64 { return s.faulty / s.quiet }

const endpointVariable = "AWS_ENDPOINT_URL_DYNAMODB"

// rounds is how often quiet and faulty runs alternate.
const rounds = 3

// share runs a recording with and without faults in turn.
func (w workload) share(ctx context.Context, m *model.Model, way func(*world) handler, is dynamodbtest.Faults) (s share, err error) {
	endpoint := os.Getenv(endpointVariable)
	proxy := dynamodbtest.NewFaulty(endpoint, 1)
	defer proxy.Close()
	os.Setenv(endpointVariable, proxy.URL)
	defer os.Setenv(endpointVariable, endpoint)
	var took [2]time.Duration
	for i := -1; i <= 2*rounds; i++ { // the first run warms up
		proxy.Set(dynamodbtest.Faults{})
		wd, err := newWorld(ctx, m, w)
		if err != nil {
			return s, err
		}
		if i > 0 && i%2 == 1 {
			proxy.Set(is)
		}
		start, err := time.Now(), error(nil)
		s.again, err = persistent(ctx, len(w.records), way(wd), s.again)
		if i >= 0 {
			took[i%2] += time.Since(start)
		}
		proxy.Set(dynamodbtest.Faults{})
		if err == nil {
			err = wd.check(ctx)
		}
		if wd.end(); err != nil {
			return s, err
		}
	}
	s.struck = proxy.Struck.Load()
	n := float64(len(w.records))
	s.quiet, s.faulty = n*(rounds+1)/took[0].Seconds(), n*rounds/took[1].Seconds()
	return s, nil
}

// persistent applies all batches, and those that fail again after a pause, as processes and
// functions do. It adds to again how often that happened.
func persistent(ctx context.Context, records int, handle handler, again int) (int, error) {
	const batch = 500
	for at := 0; at < records; {
		if err := handle(ctx, at, min(at+batch, records)); err != nil {
			if ctx.Err() != nil {
				return again, err
			}
			again++
			time.Sleep(250 * time.Millisecond)
			continue
		}
		at += batch
	}
	return again, nil
}
