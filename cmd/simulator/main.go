// Command simulator runs models in a simulated world: weir simulator by itself.
package main

import (
	"os"

	"weir/internal/sim"
)

func main() { sim.Main(os.Args[1:]) }
