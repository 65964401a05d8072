package deploy

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/store"
)

// Terraform is the plan in Terraform's language.
// The packages of the functions are files that variables name. Two resources of one name are ErrName.
func (p *Plan) Terraform() ([]byte, error) {
	t := &terraform{plan: p, has: map[string]bool{}}
	t.WriteString(p.head("terraform"))
	t.settings()
	t.variables()
	t.locals()
	t.tables()
	for _, m := range p.Models {
		t.queues(m)
		for _, f := range m.Functions {
			t.function(f)
		}
	}
	for _, m := range p.Models {
		for _, a := range m.alarms() {
			t.alarm(a)
		}
		t.dashboard(m)
	}
	t.outputs()
	return []byte(t.String()), t.err
}

// terraform writes a module. It is used once; the first error is kept in err and returned at the end.
type terraform struct {
	hcl
	plan *Plan
	has  map[string]bool
	err  error
}

// variable is the expression with a parameter's value.
func variable(param string) string { return "var." + snake(param) }

// hcl is the text as an expression.
// It is a text, or a plain reference where the text is one parameter.
func (t Text) hcl() string {
	if len(t) == 1 && t[0].Param != "" {
		return variable(t[0].Param)
	}
	var b strings.Builder
	for _, p := range t {
		if p.Param != "" {
			b.WriteString("${" + variable(p.Param) + "}")
		} else {
			b.WriteString(escaped(p.Literal))
		}
	}
	return `"` + b.String() + `"`
}

// resource writes a resource. about is for people who read it.
// A second resource of one kind and name is noted in t.err, and written all the same. The first
// such error stays.
func (t *terraform) resource(kind, id, about string, body func()) {
	name := snake(id)
	if t.has[kind+name] && t.err == nil {
		t.err = fmt.Errorf("%w, %s; make a template for each model", ErrName, name)
	}
	t.has[kind+name] = true
	t.line("")
	if about != "" {
		t.line("# %s", about)
	}
	t.block(fmt.Sprintf("resource %q %q", kind, name), body)
}

// inner writes a block after an empty line.
func (t *terraform) inner(head string, body func()) { t.line(""); t.block(head, body) }

// settings says which versions of Terraform and of its provider can read the module.
func (t *terraform) settings() {
	t.line("")
	t.block("terraform", func() {
		t.set(set{"required_version", quoted(">= 1.3")})
		t.inner("required_providers", func() {
			t.block("aws =", func() { t.set(set{"source", quoted("hashicorp/aws")}, set{"version", quoted(">= 5.40")}) })
		})
	})
}

// variables writes the parameters, with a validation where a pattern or choices limit them.
// The files of the packages are variables here; in CloudFormation they are in a bucket.
func (t *terraform) variables() {
	all := append([]Parameter{}, t.plan.Parameters...)
	all = append(all, Parameter{Name: "ProjectorCode", Default: "projector.zip", Help: "The file with the projector's package."},
		Parameter{Name: "IngestCode", Default: "ingest.zip", Help: "The file with ingest's package."})
	for _, p := range all {
		name := snake(p.Name)
		kind, fallback, choices := "string", quoted(p.Default), quotedAll(p.Choices)
		switch {
		case p.Number:
			kind, fallback, choices = "number", p.Default, "["+strings.Join(p.Choices, ", ")+"]"
		case p.Default == "true" || p.Default == "false":
			kind, fallback, choices = "bool", p.Default, ""
		}
		if p.Required {
			fallback = ""
		}
		sensitive := ""
		if p.Secret {
			sensitive = "true"
		}
		t.line("")
		t.block(fmt.Sprintf("variable %q", name), func() {
			t.set(set{"type", kind}, set{"default", fallback}, set{"description", quoted(p.Help)}, set{"sensitive", sensitive})
			check, say := "", ""
			switch {
			case p.Pattern != "":
				check, say = "can(regex("+quoted(p.Pattern)+", var."+name+"))", "It must match "+p.Pattern+"."
			case len(p.Choices) > 0 && kind != "bool":
				check, say = "contains("+choices+", var."+name+")", "It must be one of "+strings.Join(p.Choices, ", ")+"."
			}
			if check != "" {
				t.inner("validation", func() { t.set(set{"condition", check}, set{"error_message", quoted(say)}) })
			}
		})
	}
}

// locals writes what several resources need: names and ARNs that follow from the variables.
// A stage other than default has a table weir of its own, with the stage in its name.
func (t *terraform) locals() {
	for _, data := range []string{"aws_caller_identity", "aws_partition", "aws_region"} {
		t.line("")
		t.line("data %q \"current\" {}", data)
	}
	t.line("")
	t.block("locals", func() {
		all := []set{
			{"partition", "data.aws_partition.current.partition"}, {"region", "data.aws_region.current.id"}, {"account", "data.aws_caller_identity.current.account_id"},
			{"is_default", `var.stage == "default"`},
			{"own_table", `local.is_default ? "weir" : "weir-${var.stage}"`},
			{"table_arns", `"arn:${local.partition}:dynamodb:${local.region}:${local.account}:table"`},
			{"topics", `var.alarm_topic_arn == "" ? [] : [var.alarm_topic_arn]`},
			{"data_key", `var.data_key_arn == "" ? null : var.data_key_arn`},
			{"log_key", `var.log_key_arn == "" ? null : var.log_key_arn`},
		}
		for _, table := range t.plan.Tables {
			all = append(all, set{snake(table.stream()), fmt.Sprintf("coalesce(%s, one(aws_dynamodb_table.%s[*].stream_arn))", variable(table.stream()), snake(table.ID+"Table"))})
		}
		t.set(all...)
	})
}

// tables writes the tables that the stack's tables are, each with a count of 0 or 1.
func (t *terraform) tables() {
	def := Own()
	t.table("WeirTable", "weir's own table.", variable(paramOwn), "local.own_table", def)
	t.table("RegistryTable", "Which stage each table belongs to; the own table of the stage default.", "!local.is_default && "+variable(paramRegistry), quoted(def.Name), def)
	for _, table := range t.plan.Tables {
		t.table(table.ID+"Table", "The model's table "+table.Def.Name+", unless it exists.", variable(table.stream())+` == ""`, variable(table.name()), table.Def)
	}
}

// table writes a table. Terraform refuses to destroy it, as CloudFormation retains it.
// It is made only where the condition in when holds.
func (t *terraform) table(id, about, when, name string, def store.Table) {
	t.resource("aws_dynamodb_table", id, about, func() {
		all := []set{{"count", when + " ? 1 : 0"}, {"name", name}, {"billing_mode", quoted("PAY_PER_REQUEST")}, {"hash_key", quoted(def.Key.Partition.Name)}}
		if k := def.Key.Sort.Name; k != "" {
			all = append(all, set{"range_key", quoted(k)})
		}
		if def.Stream {
			all = append(all, set{"stream_enabled", "true"}, set{"stream_view_type", quoted("NEW_AND_OLD_IMAGES")})
		}
		t.set(all...)
		for _, k := range keyAttributes(&def) {
			t.inner("attribute", func() { t.set(set{"name", quoted(k.Name)}, set{"type", quoted(k.Type.Descriptor())}) })
		}
		for i := range def.Indexes {
			t.index(&def.Indexes[i])
		}
		if def.TTL != "" {
			t.inner("ttl", func() { t.set(set{"attribute_name", quoted(def.TTL)}, set{"enabled", "true"}) })
		}
		t.inner("point_in_time_recovery", func() { t.set(set{"enabled", "true"}) })
		t.inner(`dynamic "server_side_encryption"`, func() {
			t.set(set{"for_each", "local.data_key[*]"})
			t.inner("content", func() { t.set(set{"enabled", "true"}, set{"kms_key_arn", "server_side_encryption.value"}) })
		})
		t.inner("lifecycle", func() { t.set(set{"prevent_destroy", "true"}) })
	})
}

// index writes an index of a table.
// A local index has the partition key of its table, and names none.
func (t *terraform) index(ix *store.Index) {
	kind, sort, hash := "global_secondary_index", "", quoted(ix.Key.Partition.Name)
	if ix.Key.Sort.Name != "" {
		sort = quoted(ix.Key.Sort.Name)
	}
	if ix.Local {
		kind, hash = "local_secondary_index", "" // it has the table's
	}
	t.inner(kind, func() {
		t.set(set{"name", quoted(ix.Name)}, set{"hash_key", hash}, set{"range_key", sort}, set{"projection_type", quoted(projection(ix))})
	})
}

// queues writes a model's three queues. Messages stay 14 days, which is the most that SQS allows.
func (t *terraform) queues(m *Model) {
	queue := func(id, about, purpose string, more ...set) {
		t.resource("aws_sqs_queue", id, about, func() {
			t.set(append([]set{{"name", `"weir-${var.stage}-` + m.Name + "-" + purpose + `"`}, {"message_retention_seconds", strconv.Itoa(14 * 24 * 3600)},
				{"kms_master_key_id", "local.data_key"}, {"sqs_managed_sse_enabled", "local.data_key == null ? true : null"}}, more...)...)
		})
	}
	queue(m.failures(), "Which parts of streams Lambda gave up: records that are missing.", "failures")
	queue(m.refused(), "Commands that were refused five times.", "refused-commands")
	queue(m.commands(), "Commands for model "+m.Name+", one JSON object a message.", "commands",
		set{"visibility_timeout_seconds", strconv.Itoa(commandVisibility)},
		set{"redrive_policy", "jsonencode({ deadLetterTargetArn = " + queueARN(m.refused()) + ", maxReceiveCount = 5 })"})
}

// queueARN is the expression with a queue's ARN.
func queueARN(id string) string { return "aws_sqs_queue." + snake(id) + ".arn" }

// count is the count of what is made for a function, "" for what always is.
func (f *Function) count() string {
	if f == nil || f.When == "" {
		return ""
	}
	return variable(f.When) + " ? 1 : 0"
}

// one is the name of a resource that is made for a function, where others refer to it.
func (f *Function) one() string {
	if f.When == "" {
		return snake(f.ID)
	}
	return snake(f.ID) + "[0]"
}

// function writes a function with its log group, role and event sources. It waits for weir's own table, since the
// first event needs it.
func (t *terraform) function(f *Function) {
	name := f.one()
	t.resource("aws_cloudwatch_log_group", f.ID, "", func() {
		t.set(set{"count", f.count()}, set{"name", `"/weir/${var.stage}/` + f.log() + `"`}, set{"retention_in_days", variable(paramDays)}, set{"kms_key_id", "local.log_key"})
	})
	t.role(f)
	t.resource("aws_lambda_function", f.ID, "It "+f.does()+".", func() {
		code := variable(f.code())
		t.set(set{"count", f.count()}, set{"function_name", `"weir-${var.stage}-` + f.Model.Name + "-" + string(f.Process) + `"`}, set{"description", quoted("weir: " + f.does())},
			set{"filename", code}, set{"source_code_hash", "filebase64sha256(" + code + ")"},
			set{"runtime", quoted("provided.al2023")}, set{"handler", quoted("bootstrap")}, set{"architectures", "[" + variable(paramArch) + "]"},
			set{"memory_size", strconv.Itoa(f.Memory)}, set{"timeout", strconv.Itoa(f.Timeout)}, set{"role", "aws_iam_role." + name + ".arn"},
			set{"depends_on", "[aws_dynamodb_table.weir_table, aws_dynamodb_table.registry_table]"})
		t.inner("environment", func() {
			t.block("variables =", func() {
				var all []set
				for _, v := range f.Env {
					all = append(all, set{v.Name, v.Value.hcl()})
				}
				t.set(all...)
			})
		})
		t.inner("logging_config", func() {
			t.set(set{"log_format", quoted("Text")}, set{"log_group", "aws_cloudwatch_log_group." + name + ".name"})
		})
	})
	t.sources(f)
}

// sources writes what invokes a function: streams, or a URL and a queue. They wait for the policy, without which the
// first events would fail.
func (t *terraform) sources(f *Function) {
	name := f.one()
	function := set{"function_name", "aws_lambda_function." + name + ".arn"}
	whole := set{"function_response_types", quotedAll([]string{"ReportBatchItemFailures"})}
	if f.hasURL() {
		t.resource("aws_lambda_function_url", f.ID, "Requests are signed: the URL asks IAM.", func() {
			t.set(set{"count", f.count()}, set{"function_name", "aws_lambda_function." + name + ".function_name"}, set{"authorization_type", quoted("AWS_IAM")})
		})
	}
	switch f.Process {
	case Query:
		return
	case Ingest:
		t.resource("aws_lambda_event_source_mapping", f.ID+"Messages", "", func() {
			t.set(function, set{"event_source_arn", queueARN(f.Model.commands())}, set{"batch_size", strconv.Itoa(commandBatch)}, set{"maximum_batching_window_in_seconds", "1"},
				whole, set{"depends_on", "[aws_iam_role_policy." + name + "]"})
		})
		return
	case Rows:
		t.resource("aws_cloudwatch_event_rule", f.ID+"Tick", "", func() {
			t.set(set{"name", `"weir-${var.stage}-` + f.Model.Name + `-tick"`}, set{"description", quoted(tickHelp)}, set{"schedule_expression", quoted(tickRate)})
		})
		rule := "aws_cloudwatch_event_rule." + snake(f.ID+"Tick")
		t.resource("aws_cloudwatch_event_target", f.ID+"Tick", "", func() {
			t.set(set{"rule", rule + ".name"}, set{"arn", "aws_lambda_function." + name + ".arn"})
		})
		t.resource("aws_lambda_permission", f.ID+"Tick", "", func() {
			t.set(set{"function_name", "aws_lambda_function." + name + ".function_name"}, set{"action", quoted("lambda:InvokeFunction")},
				set{"principal", quoted("events.amazonaws.com")}, set{"source_arn", rule + ".arn"})
		})
	}
	for _, table := range f.Model.Tables {
		t.resource("aws_lambda_event_source_mapping", f.mappingID(table), "", func() {
			tumbling := ""
			if f.Stream.Tumbling > 0 {
				tumbling = strconv.Itoa(f.Stream.Tumbling)
			}
			t.set(function, set{"event_source_arn", "local." + snake(table.stream())}, set{"starting_position", quoted("TRIM_HORIZON")},
				set{"batch_size", strconv.Itoa(f.Stream.Batch)}, set{"maximum_batching_window_in_seconds", strconv.Itoa(f.Stream.Window)},
				set{"tumbling_window_in_seconds", tumbling}, set{"parallelization_factor", strconv.Itoa(f.Stream.Parallel)}, whole,
				set{"maximum_retry_attempts", "-1"}, set{"maximum_record_age_in_seconds", "-1"}, set{"depends_on", "[aws_iam_role_policy." + name + "]"})
			t.inner("metrics_config", func() { t.set(set{"metrics", quotedAll([]string{"EventCount"})}) })
			t.inner("destination_config", func() {
				t.block("on_failure", func() { t.set(set{"destination_arn", queueARN(f.Model.failures())}) })
			})
		})
	}
}

// role writes a function's role and policy, from the same grants as CloudFormation's.
// A grant that has no resource in this plan is left out.
func (t *terraform) role(f *Function) {
	name := f.one()
	t.line("")
	t.block(fmt.Sprintf(`data "aws_iam_policy_document" %q`, snake(f.ID)), func() {
		if n := f.count(); n != "" {
			t.set(set{"count", n})
			t.line("")
		}
		for i, g := range statementsOf(f.Process) {
			resources, when := t.resourcesOf(f, g.On)
			if len(resources) == 0 {
				continue
			}
			if i > 0 {
				t.line("")
			}
			t.line("# %s", g.Reason)
			if when == "" {
				t.block("statement", func() { t.statement(f, g, resources) })
				continue
			}
			t.block(`dynamic "statement"`, func() {
				t.set(set{"for_each", when + " ? [1] : []"})
				t.inner("content", func() { t.statement(f, g, resources) })
			})
		}
	})
	t.resource("aws_iam_role", f.ID, "", func() {
		t.set(set{"count", f.count()}, set{"name", `"weir-${var.stage}-` + f.Model.Name + "-" + string(f.Process) + `"`},
			set{"assume_role_policy", `jsonencode({ Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }] })`})
	})
	t.resource("aws_iam_role_policy", f.ID, "", func() {
		t.set(set{"count", f.count()}, set{"name", quoted("weir")}, set{"role", "aws_iam_role." + name + ".id"}, set{"policy", "data.aws_iam_policy_document." + name + ".json"})
	})
}

// statement writes the body of one statement of a policy.
func (t *terraform) statement(f *Function, g Grant, resources []string) {
	effect := ""
	if g.ID == otherTables.ID {
		effect = quoted("Deny")
	}
	t.set(set{"sid", quoted(g.ID)}, set{"effect", effect}, set{"actions", quotedAll(g.Actions)}, set{"resources", "[" + strings.Join(resources, ", ") + "]"})
	if via := viaService[g.On]; via != "" {
		t.inner("condition", func() {
			t.set(set{"test", quoted("StringEquals")}, set{"variable", quoted("kms:ViaService")}, set{"values", `["` + via + `.${local.region}.amazonaws.com"]`})
		})
	}
	for _, c := range keyConditions(g) {
		values := []string{quoted(c.like)}
		if c.own {
			values = nil
			for _, table := range f.Model.Tables {
				values = append(values, `"`+stageRows+`${`+variable(table.name())+`}"`)
			}
		}
		t.inner("condition", func() {
			t.set(set{"test", quoted(c.operator)}, set{"variable", quoted("dynamodb:LeadingKeys")}, set{"values", "[" + strings.Join(values, ", ") + "]"})
		})
	}
}

// resourcesOf are the ARNs of what a grant is for, and the condition under which they exist.
// when is the expression under which they exist, "" for always.
func (t *terraform) resourcesOf(f *Function, on Resource) (out []string, when string) {
	each := func(suffix string, has func(*Table) bool) {
		for _, table := range f.Model.Tables {
			if has(table) {
				out = append(out, `"${local.table_arns}/${`+variable(table.name())+`}`+suffix+`"`)
			}
		}
	}
	all := func(*Table) bool { return true }
	switch on {
	case OwnTable, CursorSecret:
		return []string{`"${local.table_arns}/${local.own_table}"`}, ""
	case Registry:
		return []string{`"${local.table_arns}/weir"`}, "!local.is_default"
	case ModelTables:
		each("", all)
	case ModelIndexes:
		each("/index/*", func(table *Table) bool { return len(table.Def.Indexes) > 0 })
	case ModelStreams:
		each("/stream/*", all)
	case Domain:
		if !f.Model.Searches {
			return nil, ""
		}
		return []string{`"${var.open_search_domain_arn}/*"`}, `var.open_search_domain_arn != ""`
	case FailureQueue:
		return []string{queueARN(f.Model.failures())}, ""
	case CommandQueue:
		return []string{queueARN(f.Model.commands())}, ""
	case LogGroup:
		return []string{`"${aws_cloudwatch_log_group.` + f.one() + `.arn}:*"`}, ""
	case DataKey, QueueKey:
		return []string{"var.data_key_arn"}, `var.data_key_arn != ""`
	}
	return out, ""
}

// alarm writes an alarm, as CloudFormation's.
func (t *terraform) alarm(a alarm) {
	t.resource("aws_cloudwatch_metric_alarm", a.ID, "", func() {
		t.set(set{"count", a.Metric.Function.count()}, set{"alarm_name", `"weir-${var.stage}-` + strings.ReplaceAll(snake(a.ID), "_", "-") + `"`}, set{"alarm_description", quoted(a.Help)},
			set{"namespace", quoted(a.Metric.Namespace)}, set{"metric_name", quoted(a.Metric.Name)}, set{"dimensions", dimensions(a.Metric)},
			set{"statistic", quoted(a.Metric.Statistic)}, set{"period", strconv.Itoa(a.periodSeconds())}, set{"evaluation_periods", strconv.Itoa(a.evaluationPeriods())}, set{"threshold", strconv.Itoa(a.Threshold)},
			set{"comparison_operator", quoted("GreaterThanOrEqualToThreshold")}, set{"treat_missing_data", quoted(a.treatMissingData())},
			set{"alarm_actions", "local.topics"}, set{"ok_actions", "local.topics"})
	})
}

// dimensions are those of a metric. A stage other than default is one of weir's own metrics.
func dimensions(m metric) string {
	switch {
	case m.Queue != "":
		return "{ QueueName = aws_sqs_queue." + snake(m.Queue) + ".name }"
	case m.ofMapping():
		return "{ EventSourceMappingUUID = aws_lambda_event_source_mapping." + snake(m.Function.mappingID(m.Table)) + ".uuid }"
	case m.Table == nil:
		return "{ FunctionName = aws_lambda_function." + m.Function.one() + ".function_name }"
	}
	return fmt.Sprintf("merge(local.is_default ? {} : { Stage = var.stage }, { Model = %s, Table = %s })",
		quoted(m.Function.Model.Name), quoted(m.Table.Def.Name))
}

// dashboard prints the model's dashboard as the JSON that CloudWatch takes, with Terraform's
// expressions for names.
func (t *terraform) dashboard(m *Model) {
	t.resource("aws_cloudwatch_dashboard", m.ID, "", func() {
		t.set(set{"dashboard_name", `"weir-${var.stage}-` + m.Name + `"`})
		t.line("")
		t.line("dashboard_body = <<-EOT")
		body := m.dashboard(dashboardNames{
			region: "${local.region}", schema: `${local.is_default ? "weir,Model,Table" : "weir,Stage,Model,Table"}`,
			filter: `${local.is_default ? "" : "Stage=\\\"${var.stage}\\\" "}`,
			function: func(f *Function) string {
				if f.When != "" { // there may be none
					return "weir-${var.stage}-" + f.Model.Name + "-" + string(f.Process)
				}
				return "${aws_lambda_function." + snake(f.ID) + ".function_name}"
			},
			queue: func(id string) string { return "${aws_sqs_queue." + snake(id) + ".name}" },
		})
		t.WriteString(indented(body, t.depth+1))
		t.line("EOT")
	})
}

// indented puts two blanks for each level before every line.
func indented(text string, depth int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat("  ", depth) + line)
	}
	return b.String()
}

// outputs prints where the write side of each model takes commands, and where queries are answered.
func (t *terraform) outputs() {
	for _, m := range t.plan.Models {
		for _, o := range []struct{ name, help, value string }{
			{m.ID + "Url", "Where model " + m.Name + " takes writes over HTTP.", "aws_lambda_function_url." + snake(m.ID+"Ingest") + ".function_url"},
			{m.ID + "Queue", "Where model " + m.Name + " takes commands.", "aws_sqs_queue." + snake(m.commands()) + ".url"},
			{m.ID + "QueryUrl", "Where model " + m.Name + " answers queries, null without that function.", "one(aws_lambda_function_url." + snake(m.ID+"Query") + "[*].function_url)"},
		} {
			t.line("")
			t.block(fmt.Sprintf("output %q", snake(o.name)), func() { t.set(set{"description", quoted(o.help)}, set{"value", o.value}) })
		}
	}
}
