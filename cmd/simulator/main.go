// Command simulator runs models in a simulated world: weir simulator by itself.
package main

import (
	"os"

	"weir/internal/simulatorcli"
)

func main() { simulatorcli.Main(os.Args[1:]) }
