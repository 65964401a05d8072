// Command projector derives data from recorded or live streams and answers queries on it: weir without its other programs.
package main

import (
	"os"

	"weir/internal/projectorcli"
)

func main() { projectorcli.Main(os.Args[1:]) }
