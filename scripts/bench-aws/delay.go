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

// The network: DynamoDB Local answers in less than a millisecond, so what one measures on
// one machine is its own speed. Here a proxy holds each request back first, as long as a
// request to a DynamoDB takes.

var delays = []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond}

// measureDelays prints records per second by delay, batch and concurrency. It fails if weir
// is less than five times as fast as plain at 5 ms with batches of 100 uploads.
func measureDelays(ctx context.Context, records int) error {
	m, err := model.Load("gallery")
	if err != nil {
		return err
	}
	proxy, end := startProxy()
	defer end()
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "recording\tdelay\tbatch\tweir, 32 at once\tweir, 8\tplain, 32\tplain\tmarker\tweir/plain\t")
	goal := 0.0
	for _, w := range []workload{uploadsWorkload(m, records), likesWorkload(m, records)} {
		for _, delay := range delays {
			fmt.Fprintf(os.Stderr, "%s, %v\n", w.name, delay)
			proxy.Set(dynamodbtest.Faults{Delay: delay})
			// The handlers take one record after the other, or all of the recording: their
			// speed does not depend on the batch.
			plain, err := measureSpeed(ctx, m, w, records, 1, (*world).plainHandler)
			if err != nil {
				return err
			}
			marker, err := measureSpeed(ctx, m, w, records, 1, (*world).markingHandler)
			if err != nil {
				return err
			}
			for _, batch := range batches {
				var found [3]float64
				for i, way := range []struct {
					atOnce int
					new    func(*world) handler
				}{{concurrency, (*world).weirHandler}, {8, (*world).weirHandler}, {concurrency, (*world).plainAtOnce}} {
					if found[i], err = measureSpeed(ctx, m, w, batch, way.atOnce, way.new); err != nil {
						return err
					}
				}
				if w.name == "uploads" && batch == 100 && delay == 5*time.Millisecond {
					goal = found[0] / plain
				}
				fmt.Fprintf(tw, "%s\t%v\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f ×\t\n", w.name, delay, batch, found[0], found[1], found[2], plain, marker, found[0]/plain)
			}
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if goal < 5 {
		return fmt.Errorf("uploads, 5 ms, batches of 100: %.1f × the speed of plain, less than 5 ×", goal)
	}
	return nil
}

// measureProcess prints how many uploads a second a whole process applies at 5 ms, on 1 shard and on 20, beside plain, which takes
// one after the other. It fails below ten times that.
func measureProcess(ctx context.Context, records int) error {
	m, err := model.Load("gallery")
	if err != nil {
		return err
	}
	proxy, end := startProxy()
	defer end()
	delay := func(is bool) {
		proxy.Set(dynamodbtest.Faults{})
		if is {
			proxy.Set(dynamodbtest.Faults{Delay: 5 * time.Millisecond})
		}
	}
	delay(true)
	plain, err := measureSpeed(ctx, m, uploadsWorkload(m, 500), 500, 1, (*world).plainHandler)
	if err != nil {
		return err
	}
	w, least := uploadsWorkload(m, records), 0.0
	for i, shards := range []int{1, 20} {
		again := 0
		delay(false)
		took, err := followShards(m, w, shards)(ctx, delay, &again)
		if err != nil {
			return err
		}
		of := float64(records) / took.Seconds()
		fmt.Printf("uploads, 5 ms, a process, shards: %d, records/s: %.0f, plain: %.0f, weir/plain: %.1f ×, batches again: %d\n", shards, of, plain, of/plain, again)
		if i == 0 || of/plain < least {
			least = of / plain
		}
	}
	if least < 10 {
		return fmt.Errorf("a process has %.1f × the speed of plain, less than 10 ×", least)
	}
	return nil
}

// measureSpeed returns how many records a second a handler applies.
func measureSpeed(ctx context.Context, m *model.Model, w workload, batch, atOnce int, way func(*world) handler) (float64, error) {
	f, err := runThrough(ctx, m, w, batch, atOnce, way)
	if err != nil {
		return 0, fmt.Errorf("%s, batches of %d: %w", w.name, batch, err)
	}
	return f.speed(), nil
}
