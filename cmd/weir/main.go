// Command weir is all programs in one: the commands of projector, and ingest, simulator and function by their names.
package main

import (
	"os"

	"weir/internal/ingestcli"
	"weir/internal/model"
	"weir/internal/projectorcli"
	"weir/internal/simulatorcli"
)

func main() {
	model.Called = "weir"
	run, args := projectorcli.Main, os.Args[1:]
	if len(args) > 0 {
		switch args[0] {
		case "ingest":
			run, args = ingestcli.Main, args[1:]
		case "simulator":
			run, args = simulatorcli.Main, args[1:]
		}
	}
	run(args)
}
