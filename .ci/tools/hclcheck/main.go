// Command hclcheck parses files in HCL and reports those that terraform fmt would change.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

func main() {
	bad := false
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "hclcheck:", err)
			os.Exit(2)
		}
		if _, problems := hclparse.NewParser().ParseHCL(text, name); problems.HasErrors() {
			for _, p := range problems {
				fmt.Println(p)
			}
			bad = true
		} else if !bytes.Equal(hclwrite.Format(text), text) {
			fmt.Printf("%s is not as terraform fmt writes it\n", name)
			bad = true
		}
	}
	if bad {
		os.Exit(1)
	}
}
