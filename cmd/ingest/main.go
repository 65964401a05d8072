// Command ingest writes rows, checked against a model: weir ingest by itself, as Lambda loads it, too.
package main

import (
	"os"

	"weir/internal/ingestcli"
)

func main() { ingestcli.Main(os.Args[1:]) }
