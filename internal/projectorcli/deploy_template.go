package projectorcli

import (
	"errors"
	"fmt"

	"weir/internal/cli"
	"weir/internal/deploy"
	"weir/internal/model"
	"weir/internal/search/opensearch"
	"weir/internal/seq"
	"weir/internal/system"
)

// deployTemplate prints a template. It reads model files only, needs no credentials, and writes no file.
type deployTemplate struct {
	Models []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
	Format string   `hidden:"" env:"WEIR_TEMPLATE_FORMAT"`
}

func (deployTemplate) Help() string {
	return `Prints a CloudFormation template that makes what the models need on AWS: tables, functions with their
roles and event source mappings, queues, logs, alarms and a dashboard. It reads the models
alone, and asks no service. The same models give the same template. The stage, names of
tables, keys and where alarms go are parameters; tables that exist are used, if their
streams are given.

  projector deploy template gallery > template.yaml
  aws cloudformation deploy --template-file template.yaml --stack-name weir-gallery \
    --s3-bucket my-packages --capabilities CAPABILITY_IAM --parameter-overrides Release=r1 CodeBucket=my-packages OpenSearchUrl=https://...

sam deploy takes the same file:

  sam deploy --template-file template.yaml --stack-name weir-gallery --resolve-s3 \
    --capabilities CAPABILITY_IAM --parameter-overrides Release=r1 CodeBucket=my-packages OpenSearchUrl=https://...

So does Terraform, as a stack, from a bucket:

  resource "aws_cloudformation_stack" "weir" {
    name          = "weir-gallery"
    template_url  = "https://my-packages.s3.amazonaws.com/template.yaml"
    capabilities  = ["CAPABILITY_IAM"]
    parameters    = { Release = "r1", CodeBucket = "my-packages", OpenSearchUrl = "https://..." }
  }

CloudFormation takes at most 51,200 bytes from a command, and 1 MB from a bucket. Most templates are above
the first, and the command says so: aws cloudformation deploy needs --s3-bucket then.`
}

// Run asks no store. Models that cannot share one are a usage error, exit code 2. Nothing is
// printed unless the whole template could be made.
func (c *deployTemplate) Run(p *program) error {
	if c.Format != "" && c.Format != "cloudformation" {
		return usage("--format is %s, and templates are for CloudFormation alone: sam deploy takes the same file, and Terraform has it as an aws_cloudformation_stack, as --help shows", c.Format)
	}
	models, err := cli.Load(p.ctx, c.Models)
	if err != nil {
		return err
	}
	if _, err := system.Tables(models); err != nil {
		return usage("%v", err)
	}
	plan, err := deploy.Of(models)
	if err != nil {
		return templateError(err)
	}
	text, err := plan.CloudFormation()
	if err != nil {
		return templateError(err)
	}
	if _, err := p.stdout.Write(text); err != nil {
		return err
	}
	if len(text) > deploy.InlineBytes {
		fmt.Fprintf(p.stderr, "the template has %d bytes, and CloudFormation takes %d of them from a command: deploy it from a bucket, with aws cloudformation deploy --s3-bucket BUCKET\n", len(text), deploy.InlineBytes)
	}
	return nil
}

// templateError makes a usage error of names that collide, and of too large a template: the models have to be changed or
// given apart.
func templateError(err error) error {
	if errors.Is(err, deploy.ErrName) || errors.Is(err, deploy.ErrLarge) {
		return usage("%v", err)
	}
	return err
}

// deployDashboard prints a dashboard and alarms for the metrics of processes. It asks no service.
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
	names := seq.Map(models, func(m *model.Model) string { return m.Name })
	text := deploy.Grafana(names)
	if c.Format == "prometheus" {
		if text, err = deploy.PrometheusRules(names); err != nil {
			return err
		}
	}
	_, err = p.stdout.Write(text)
	return err
}

// deployRole prints a role for the Security plugin of OpenSearch. It asks no service.
type deployRole struct {
	cli.StageFlags
	Doctor bool `help:"Also what projector doctor asks of the cluster: its health, disks and settings, and whether it runs scripts."`
}

func (deployRole) Help() string {
	return `Prints the role that the programs of a stage need in OpenSearch with fine-grained access
control: actions on the indexes that weir makes, and no others. The stage default has
weir-*, in which those of all stages are. Give it to the role of the functions, or to a
user with a password:

  projector deploy role

Its output, in a file role.json, goes to the cluster so:

  curl -u admin -X PUT -H 'Content-Type: application/json' --data-binary @role.json \
    https://HOST/_plugins/_security/api/roles/weir
  curl -u admin -X PUT -H 'Content-Type: application/json' \
    -d '{"backend_roles": ["arn:aws:iam::111122223333:role/..."], "users": ["weir"]}' \
    https://HOST/_plugins/_security/api/rolesmapping/weir`
}

// Run prints the document as one JSON object.
func (c *deployRole) Run(p *program) error {
	_, err := p.stdout.Write(opensearch.Role(c.Deployment().Prefix(), c.Doctor))
	return err
}
