package main

import (
	"weir/internal/cli"
	"weir/internal/deploy"
)

// deployDashboard prints what shows and watches the metrics of processes. It asks no service.
type deployDashboard struct {
	Models []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
	Format string   `enum:"grafana,prometheus" env:"WEIR_DASHBOARD_FORMAT" default:"grafana" help:"What to print: grafana, a dashboard, or prometheus, a file of rules with alarms (default ${default})."`
}

func (deployDashboard) Help() string {
	return `Prints a dashboard for Grafana that shows every metric of projector run, with
Prometheus as its data source, or the alarms on these metrics as rules of Prometheus:
when records that wait are 25, 50 and 80 % of the 24 hours old for which a stream keeps
them, and when something was lost, stands still or waits for a person. Functions have
their dashboard and alarms in projector deploy template.

  projector deploy dashboard gallery > weir.json
  projector deploy dashboard gallery --format prometheus > weir-rules.yml`
}

// Run writes the text for models alone, so it asks no store and needs no credentials.
func (c *deployDashboard) Run(p *program) error {
	models, err := cli.Load(p.ctx, c.Models)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	text := deploy.Grafana(names)
	if c.Format == "prometheus" {
		if text, err = deploy.PrometheusRules(names); err != nil {
			return err
		}
	}
	_, err = p.stdout.Write(text)
	return err
}
