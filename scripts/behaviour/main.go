// Command behaviour shows that a refactoring did not change behaviour. It records what one
// version does, and compares the recordings of two versions.
//
//	behaviour record DIR            write the behaviour of this version into DIR
//	behaviour compare OLD NEW       compare two such directories
//	behaviour compare OLD NEW NAMES the same, after the words of OLD were replaced
//
// A recording holds the following files. They depend only on the version: two recordings of
// one version are equal byte for byte.
//
//	traces/MODEL-SEED   every step of a simulated run, for each built-in model
//	rows/MODEL          all rows of the model's tables, index entries included,
//	                    after its recorded streams were replayed
//	documents/MODEL     the search documents after that
//	own/MODEL           the rows of weir's own table after that
//
// NAMES is for a version that renamed things: a text file with an old word, a space and the
// new word on each line. Only whole words are replaced.
//
// The cost of a batch on DynamoDB, in calls and units, is recorded by
// scripts/bench-aws.sh -costs FILE and compared with diff.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	seeds := flag.Int("seeds", 20, "simulated runs of each model")
	streams := flag.String("streams", "testdata/streams", "directory of the recorded streams")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch args := flag.Args(); {
	case len(args) == 2 && args[0] == "record":
		err = recordAll(ctx, args[1], *streams, *seeds)
	case (len(args) == 3 || len(args) == 4) && args[0] == "compare":
		err = compareRecordings(args[1], args[2], append(args[3:], "")[0])
	default:
		fmt.Fprintln(os.Stderr, "usage: behaviour [-seeds N] record DIR | compare OLD NEW [NAMES]")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "behaviour:", err)
		os.Exit(1)
	}
}
