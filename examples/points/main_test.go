package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/weirtest"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"points": main}) }

func TestCases(t *testing.T) { weirtest.Page(t, "shop.test.md") }

// TestProgram runs commands of the program on rows that were there before weir.
func TestProgram(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: func(e *testscript.Env) error {
		model, err := os.ReadFile("shop.yaml")
		if err == nil {
			err = os.WriteFile(e.WorkDir+"/shop.yaml", model, 0o666)
		}
		return err
	}})
}
