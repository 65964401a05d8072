package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// configured is a program with commands below a command, flags of several types, and one of a single act.
type configured struct {
	Run  configuredRun `cmd:""`
	Dead struct {
		List  configuredList `cmd:""`
		Retry configuredList `cmd:""`
	} `cmd:""`
	Extras
}

type configuredRun struct {
	Data   string        `default:"./data"`
	AWS    bool          `name:"aws"`
	Rate   float64       `default:"1"`
	Lease  time.Duration `default:"30s"`
	Tables []string      `sep:"none"`
	Build  string        `enum:"new,never" default:"new"`
	Again  bool          `env:"-"`
}

type configuredList struct {
	Data string `default:"./data"`
	Word string `name:"run"` // has the name of a command
}

func (c *configuredRun) Run(out *bytes.Buffer) error {
	fmt.Fprint(out, c.Data, " ", c.AWS, " ", c.Rate, " ", c.Lease, " ", c.Tables, " ", c.Build)
	return nil
}

func (c *configuredList) Run(out *bytes.Buffer) error {
	fmt.Fprint(out, c.Data, " ", c.Word)
	return nil
}

// TestConfig: the file is read after command line and environment, the section of a command before what is for all; and
// whatever is wrong anywhere in it is refused with its place.
func TestConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	const all = "data: ./rows\nrun:\n  aws: true\n  rate: 2.5\n  lease: 1m\n  tables: [a=b, \"c=d,e=f\"]\n  data: ./run\n"
	const refused = "refused: "
	for i, c := range []struct {
		file, args, env, want string
	}{
		{"", "run", "", "./data false 1 30s [] new"},
		{all, "run", "", "./run true 2.5 1m0s [a=b c=d,e=f] new"},
		{all, "run --data ./flag --rate 3", "WEIR_LEASE=2m WEIR_RATE=4", "./flag true 3 2m0s [a=b c=d,e=f] new"},
		{all, "run", "WEIR_DATA=", " true 2.5 1m0s [a=b c=d,e=f] new"},
		{all, "run --no-aws", "", refused + "unknown flag --no-aws"},
		{all, "dead list", "", "./rows "},
		{"dead:\n  run: word\n  data: ./dead\n  list: {data: ./list}\n", "dead list", "", "./list word"},
		{"dead:\n  run: word\n  data: ./dead\n  list: {data: ./list}\n", "dead retry", "", "./dead word"},
		{"run: word\n", "dead list", "", "./data word"},
		{`{"data": "./json", "run": {"aws": true}}`, "run", "", "./json true 1 30s [] new"},
		{"# nothing\n", "run", "", "./data false 1 30s [] new"},

		{"data: x\nrum: 1\n", "run", "", refused + "FILE:2: it has no flag --rum"},
		{"rum: {data: x}\n", "run", "", refused + `FILE:1: it has no command "rum"`},
		{"run:\n  data: x\n  rta: 1\n", "dead list", "", refused + "FILE:3: it run has no flag --rta"},
		{"run: {again: true}\n", "run", "", refused + "FILE:1: --again is for the command line alone"},
		{"config: x\n", "run", "", refused + "FILE:1: --config is for the command line alone"},
		{"help: true\n", "run", "", refused + "FILE:1: it has no flag --help"},
		{"data: x\ndata: y\n", "run", "", refused + "FILE:2: data stands here twice"},
		{"data:\n", "run", "", refused + "FILE:1: data is a value, or a list of values"},
		{"run:\n  tables: [{a: b}]\n", "run", "", refused + "FILE:2: tables is a value, or a list of values"},
		{"- data\n", "run", "", refused + "FILE:1: a configuration is a mapping"},
		{"data: [\n", "run", "", refused + "FILE: yaml: line"},
		{"run:\n\n  rate: much\n", "run", "", refused + "FILE:3: --rate"},
		{"run:\n  build: often\n", "run", "", refused + "FILE:2: --build must be one of"},
		{"run:\n  aws: perhaps\n", "run", "", refused + "FILE:2: --aws"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "conf.yaml")
			args := strings.Fields(c.args)
			if c.file != "" {
				if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", file)
			}
			for _, e := range strings.Fields(c.env) {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv(name, value)
			}
			code, out, said := runConfigured(args...)
			said = strings.ReplaceAll(said, file, "FILE")
			if want, is := strings.CutPrefix(c.want, refused); is {
				if code != Mistake || !strings.HasPrefix(said, "it: "+want) {
					t.Errorf("%d %s", code, said)
				}
			} else if code != Good || out != c.want {
				t.Errorf("%d %q, should be %q\n%s", code, out, c.want, said)
			}
		})
	}
}

func runConfigured(args ...string) (code int, out, said string) {
	var printed, errs bytes.Buffer
	p := Program{Name: "it", Commands: &configured{}}
	code = p.Run(context.Background(), args, &printed, &errs, &printed)
	return code, printed.String(), errs.String()
}

// TestConfigFound: without --config the program's own file is read, if it is in the directory; one that is named has to
// be there, and is read instead. Help needs none of them.
func TestConfigFound(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("it.yaml", "data: ./own\n")
	write("other.yaml", "data: ./other\n")
	write("large.yaml", strings.Repeat("# \n", maxConfig/3+1))
	if _, out, said := runConfigured("dead", "list"); out != "./own " {
		t.Errorf("%q %s", out, said)
	}
	if _, out, said := runConfigured("dead", "list", "--config", "other.yaml"); out != "./other " {
		t.Errorf("%q %s", out, said)
	}
	t.Setenv("WEIR_CONFIG", "other.yaml")
	if _, out, said := runConfigured("dead", "list"); out != "./other " {
		t.Errorf("%q %s", out, said)
	}
	for file, want := range map[string]string{"none.yaml": "no such file", "large.yaml": "a configuration has at most", ".": ". is not a file"} {
		if code, _, said := runConfigured("dead", "list", "--config", file); code != Mistake || !strings.Contains(said, want) {
			t.Errorf("%s: %d %s", file, code, said)
		}
	}
	write("it.yaml", "nothing: 1\n")
	t.Setenv("WEIR_CONFIG", "none.yaml")
	if code, out, said := runConfigured("--help"); code != Good {
		t.Errorf("%d %s%s", code, out, said)
	}
}
