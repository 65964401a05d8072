// Command function is the projector as a Lambda function and nothing else, to keep the
// package small. Build it with -tags lambda,lambda.norpc, which leaves out the embedded
// drivers and the runtime's RPC. Its configuration is in the environment
// (docs/guide/operations.md, Functions).
package main

import (
	"context"
	"fmt"
	"os"

	"weir/internal/cli"
	"weir/internal/function"
)

// main serves until Lambda ends the process. Started in another way, it says so and exits with 2.
func main() {
	if !cli.InLambda(os.Args[1:]) {
		fmt.Fprintln(os.Stderr, "function: Lambda starts this program; what a person runs is projector")
		os.Exit(cli.Mistake)
	}
	ctx := cli.Stopped(context.Background())
	program := cli.Program{Name: "function", Again: "goes on where this one stopped"}
	os.Exit(program.Fail(ctx, function.Serve(ctx, os.Stdout, os.Stderr), os.Stderr))
}
