// Command weir is all programs in one: the commands of projector, and ingest, simulator and function by their names.
package main

import (
	"os"

	"weir"
	"weir/internal/model"
	"weir/internal/sim"
)

func main() {
	model.Called = "weir"
	if len(os.Args) > 1 && os.Args[1] == "simulator" {
		sim.Main(os.Args[2:])
	}
	weir.Main()
}
