package projectorcli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"weir/internal/cli"
	"weir/internal/doctor"
	"weir/internal/seq"
	"weir/internal/survey"
	"weir/internal/system"
)

// doctorCommand examines whether a model can run on AWS. It changes nothing, and may run at any time.
type doctorCommand struct {
	output
	cli.StageFlags
	Model      string `arg:"" help:"Name of a built-in model or path of a model file."`
	AWS        bool   `name:"aws" required:"" help:"On AWS, found by the SDK's own environment: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB and the rest."`
	DeriveIn   string `placeholder:"REGION" help:"The region that derives from tables that are replicated between regions."`
	OpenSearch string `name:"opensearch" placeholder:"URL" help:"The cluster of the model's searches."`
}

func (doctorCommand) Help() string {
	return `Examines what the model needs on AWS, before the first start or when something is
wrong: credentials, clock, tables with their keys, indexes, streams, TTL, capacity and
backups, functions on the streams and their settings, permissions, the search cluster,
names and versions. It changes nothing; permissions are asked by writes that no row can
meet, which cost a write unit each.

Each finding is bad, warn, unknown or ok, the worst first, with what mends it. Unknown
says what doctor needs to know more. The exit code is 1 if a finding is bad, and 3 if a
table could not be described: nothing then says whether weir can start.

  projector doctor gallery --aws --opensearch https://search-x.eu-west-1.es.amazonaws.com
  projector doctor gallery --aws --stage prod -o json`
}

// examined is the result as JSON.
type examined struct {
	Model    string                 `json:"model"`
	Verdicts map[doctor.Verdict]int `json:"verdicts"`
	Findings []doctor.Finding       `json:"findings"`
}

// Run prints all findings. A bad one is exit code 1, and else a table that could not be described is 3.
// A place that is given wrongly, and models that cannot share a store, are usage errors.
func (c *doctorCommand) Run(p *program) error {
	models, err := cli.Load(p.ctx, []string{c.Model})
	if err != nil {
		return err
	}
	if _, err := system.Tables(models); err != nil {
		return usage("%v", err)
	}
	at := system.Place{AWS: c.AWS, OpenSearch: c.OpenSearch, Stage: c.Deployment()}
	facts, err := survey.Of(p.ctx, at, models[0], c.DeriveIn)
	if errors.Is(err, system.ErrConfig) {
		return usage("%v", err)
	}
	if err != nil {
		return err
	}
	out := examined{models[0].Name, map[doctor.Verdict]int{}, doctor.Examine(facts)}
	for _, v := range doctor.Verdicts {
		out.Verdicts[v] = doctor.Count(out.Findings, v)
	}
	if err := out.print(p, c.Output); err != nil {
		return err
	}
	if out.Verdicts[doctor.Bad] > 0 {
		return failed(exitCheck)
	}
	if blind := facts.Blind(); len(blind) > 0 {
		return fmt.Errorf("nothing says whether weir can start: not described: %s", strings.Join(blind, ", "))
	}
	return nil
}

// print prints the findings: as a table for people, as one object, or one finding a line.
// The counts by verdict go to stderr, so that stdout has findings alone.
func (x *examined) print(p *program, as string) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false)
	switch as {
	case "json":
		return enc.Encode(x)
	case "jsonl":
		for i := range x.Findings {
			if err := enc.Encode(x.Findings[i]); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, f := range x.Findings {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Verdict, f.Subject, f.Check, f.Says)
		if f.Mend != "" {
			fmt.Fprintf(table, "\t\t\t  mend: %s\n", f.Mend)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	counts := seq.Map(doctor.Verdicts, func(v doctor.Verdict) string { return fmt.Sprint(x.Verdicts[v], " ", v) })
	fmt.Fprintf(p.stderr, "%s: %s\n", x.Model, strings.Join(counts, ", "))
	return nil
}
