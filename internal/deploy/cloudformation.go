package deploy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/seq"
	"weir/internal/store"
)

// CloudFormation is the plan as a CloudFormation template.
// The packages of the functions are objects in a bucket that a parameter names. Two resources of one name are ErrName,
// and more than CloudFormation takes is ErrLarge.
func (p *Plan) CloudFormation() ([]byte, error) { return (&stack{plan: p}).writeTemplate() }

// stack writes a template.
// It is used once. The first error is kept in err and returned at the end, so that functions that add resources need not
// look at errors.
type stack struct {
	plan      *Plan
	resources []entry
	has       map[string]bool
	err       error
}

// ref, getAtt, sub and either are the intrinsic functions of the same names.
func ref(name string) node { return tagged("Ref", name) }

// getAtt is an attribute of a resource of the template (Fn::GetAtt).
func getAtt(name, what string) node { return tagged("GetAtt", name+"."+what) }

// sub is a text with ${…} in it (Fn::Sub). A text from a model must not be put in unescaped.
func sub(text string) node { return tagged("Sub", text) }

// either is Fn::If on one line.
func either(cond string, a, b any) node {
	return tagged("If", putOnOneLine(list(cond, a, b)))
}

// optional is a property that is left out unless the condition holds.
func optional(cond string, a any) node { return either(cond, a, ref("AWS::NoValue")) }

// block is optional for something long.
func block(cond string, a any) node { return tagged("If", list(cond, a, ref("AWS::NoValue"))) }

// when are the entries of a resource that is made for a function, under the function's condition if it has one.
func (f *Function) when(entries ...entry) []entry {
	if f == nil || f.When == "" {
		return entries
	}
	return append([]entry{is("Condition", f.When+"Now")}, entries...)
}

// add adds a resource. about is for people who read the template.
// A second resource of one id is an error, kept in s.err; the model's names lead to it, not the caller.
func (s *stack) add(id, about, kind string, entries ...entry) {
	if s.has == nil {
		s.has = map[string]bool{}
	}
	if s.has[id] && s.err == nil {
		s.err = fmt.Errorf("%w, %s; make a template for each model", ErrName, id)
	}
	s.has[id] = true
	s.resources = append(s.resources, entry{id, object(append([]entry{is("Type", kind)}, entries...)...), about})
}

// writeTemplate adds all resources and writes the template. It is called once.
// The first error of any resource is returned, and no template then. A template above CloudFormation's limit is an error
// too. The same plan gives the same bytes.
func (s *stack) writeTemplate() ([]byte, error) {
	s.addTables()
	s.addShift()
	for _, m := range s.plan.Models {
		s.addQueues(m)
		for _, f := range m.Functions {
			s.addFunction(f)
		}
	}
	for _, a := range s.plan.alarms() {
		s.addAlarm(a)
	}
	for _, m := range s.plan.Models {
		s.addDashboard(m)
	}
	if s.err != nil {
		return nil, s.err
	}
	root := object(is("AWSTemplateFormatVersion", "2010-09-09"), is("Description", "weir: derives "+strings.Join(s.plan.names(), ", ")),
		is("Parameters", s.parameters()), is("Conditions", s.conditions()), is("Resources", object(s.resources...)), is("Outputs", s.outputs()))
	text, err := printed(s.plan.head(), root)
	if err == nil {
		err = fits(len(text), len(s.resources))
	}
	return text, err
}

// fits holds a template to the limits of CloudFormation.
func fits(bytes, resources int) error {
	if bytes <= mostBytes && resources <= mostResources {
		return nil
	}
	return fmt.Errorf("%w: it has %d bytes and %d resources, and may have %d and %d; make a template for each model", ErrLarge, bytes, resources, mostBytes, mostResources)
}

// parameters are those of the plan.
// A parameter without a default has to be given when the stack is made.
func (s *stack) parameters() node {
	var out []entry
	for _, p := range parameters(s.plan) {
		kind, fallback := "String", any(p.Default)
		if p.Number {
			kind = "Number"
		} else if p.List {
			kind = "CommaDelimitedList"
		}
		if p.Required {
			fallback = nil
		}
		e := []entry{is("Type", kind), is("Default", fallback), is("Description", p.Help)}
		if p.Pattern != "" {
			e = append(e, is("AllowedPattern", p.Pattern))
		}
		if len(p.Choices) > 0 {
			e = append(e, is("AllowedValues", putOnOneLine(list(strings2any(p.Choices)...))))
		}
		out = append(out, is(p.Name, object(e...)))
	}
	return object(out...)
}

// conditions are those that resources and properties of this file name; each compares parameters alone.
func (s *stack) conditions() node {
	equals := func(a string, b string) node { return tagged("Equals", putOnOneLine(list(ref(a), b))) }
	not := func(n node) node { return tagged("Not", putOnOneLine(list(n))) }
	out := []entry{
		is("IsDefault", equals(paramStage, "default")),
		is("IsOther", not(equals(paramStage, "default"))),
		is(paramOwn+"Now", equals(paramOwn, "true")),
		is(paramRegistry+"Now", tagged("And", putOnOneLine(list(tagged("Condition", "IsOther"), equals(paramRegistry, "true"))))),
		is("HasDataKey", not(equals(paramDataKey, ""))),
		is("HasLogKey", not(equals(paramLogKey, ""))),
		is("HasTopic", not(equals(paramTopic, ""))),
		is("HasProjectorCodeVersion", not(equals("ProjectorCodeVersion", ""))),
		is("HasIngestCodeVersion", not(equals("IngestCodeVersion", ""))),
		is("Shifts", not(equals(paramShift, atOnce))),
		is("Shifts"+paramQueries, tagged("And", putOnOneLine(list(tagged("Condition", "Shifts"), equals(paramQueries, "true"))))),
		is("HasVpc", not(tagged("Equals", putOnOneLine(list(tagged("Join", putOnOneLine(list("", ref(paramSubnets)))), ""))))),
	}
	out = append(out, is(paramQueries+"Now", equals(paramQueries, "true")), is(paramMetrics+"Now", equals(paramMetrics, "true")))
	if s.plan.searches() {
		out = append(out, is("HasDomain", not(equals(paramDomain, ""))), is("HasSecret", not(equals(paramSecret, ""))))
	}
	out = append(out, seq.Map(s.plan.Tables, func(t *Table) entry { return is("Make"+t.ID+"Table", equals(t.stream(), "")) })...)
	return object(out...)
}

// own is the name of weir's own table.
func own() node { return either("IsDefault", "weir", sub("weir-${"+paramStage+"}")) }

// addTables adds weir's own table, the registry of stages, and the models' tables, each under a condition. All are kept
// when the stack is deleted: a table of an application is never lost with a stack.
func (s *stack) addTables() {
	def := Own()
	s.addTable("WeirTable", "weir's own table.", paramOwn+"Now", own(), def)
	s.addTable("RegistryTable", "Which stage each table belongs to; the own table of the stage default.", paramRegistry+"Now", scalar(def.Name), def)
	for _, t := range s.plan.Tables {
		s.addTable(t.ID+"Table", "The model's table "+t.Def.Name+", unless it exists.", "Make"+t.ID+"Table", ref(t.name()), t.Def)
	}
}

// addTable adds a table with its indexes and stream, on demand, with recovery to a point in time.
// Where the table has to go, the stack keeps it: a deleted stack leaves its tables.
func (s *stack) addTable(id, about, cond string, name node, t store.Table) {
	var attributes, global, local []any
	for _, k := range slices.SortedFunc(slices.Values(t.KeyAttrs()), func(a, b store.KeyAttr) int { return strings.Compare(a.Name, b.Name) }) {
		attributes = append(attributes, putOnOneLine(object(is("AttributeName", k.Name), is("AttributeType", k.Type.Descriptor()))))
	}
	for _, ix := range t.Indexes {
		n := object(is("IndexName", ix.Name), is("KeySchema", keySchema(ix.Key)), is("Projection", putOnOneLine(object(is("ProjectionType", projection(&ix))))))
		if ix.Local {
			local = append(local, n)
		} else {
			global = append(global, n)
		}
	}
	e := []entry{
		is("TableName", name), is("BillingMode", "PAY_PER_REQUEST"),
		is("AttributeDefinitions", list(attributes...)), is("KeySchema", keySchema(t.Key)),
		is("GlobalSecondaryIndexes", list(global...)), is("LocalSecondaryIndexes", list(local...)),
	}
	if t.Stream {
		e = append(e, is("StreamSpecification", putOnOneLine(object(is("StreamViewType", "NEW_AND_OLD_IMAGES")))))
	}
	if t.TTL != "" {
		e = append(e, is("TimeToLiveSpecification", putOnOneLine(object(is("AttributeName", t.TTL), is("Enabled", true)))))
	}
	e = append(e,
		is("DeletionProtectionEnabled", true),
		is("PointInTimeRecoverySpecification", putOnOneLine(object(is("PointInTimeRecoveryEnabled", true)))),
		is("SSESpecification", block("HasDataKey", object(is("SSEEnabled", true), is("SSEType", "KMS"), is("KMSMasterKeyId", ref(paramDataKey))))))
	s.add(id, about, "AWS::DynamoDB::Table", is("Condition", cond), is("DeletionPolicy", "Retain"), is("UpdateReplacePolicy", "Retain"), is("Properties", object(e...)))
}

// keySchema is the KeySchema property. The partition key comes first, as DynamoDB demands.
func keySchema(k store.KeySchema) any {
	out := []any{putOnOneLine(object(is("AttributeName", k.Partition.Name), is("KeyType", "HASH")))}
	if k.Sort.Name != "" {
		out = append(out, putOnOneLine(object(is("AttributeName", k.Sort.Name), is("KeyType", "RANGE"))))
	}
	return list(out...)
}

// addQueues adds a model's three queues. Messages stay 14 days, which is the most that SQS allows.
// A deleted stack leaves the queues. A command that is refused five times goes to the queue for
// those. Lambda asks for a visibility timeout of six times the function's.
func (s *stack) addQueues(m *Model) {
	queue := func(id, about string, more ...entry) {
		e := append([]entry{is("MessageRetentionPeriod", 14*24*3600)}, more...)
		e = append(e, is("KmsMasterKeyId", optional("HasDataKey", ref(paramDataKey))),
			is("SqsManagedSseEnabled", either("HasDataKey", ref("AWS::NoValue"), true)))
		s.add(id, about, "AWS::SQS::Queue", is("DeletionPolicy", "Retain"), is("UpdateReplacePolicy", "Retain"), is("Properties", object(e...)))
	}
	queue(m.failures(), "Which parts of streams Lambda gave up: records that are missing.")
	queue(m.refused(), "Commands that were refused five times.")
	queue(m.commands(), "Commands for model "+m.Name+", one JSON object a message.",
		is("VisibilityTimeout", 180), is("RedrivePolicy", object(is("deadLetterTargetArn", getAtt(m.refused(), "Arn")), is("maxReceiveCount", 5))))
}

// addFunction adds a function with its log group, role and event sources.
func (s *stack) addFunction(f *Function) {
	s.add(f.ID+"Log", "", "AWS::Logs::LogGroup", f.when(is("Properties", object(
		is("LogGroupName", sub("/weir/${"+paramStage+"}/"+f.log())),
		is("RetentionInDays", ref(paramDays)), is("KmsKeyId", optional("HasLogKey", ref(paramLogKey))))))...)
	s.addRole(f)
	e := []entry{
		is("Description", sub("weir: "+f.does()+". ${"+paramRelease+"}")),
		is("Runtime", "provided.al2023"), is("Handler", "bootstrap"), is("Architectures", putOnOneLine(list(ref(paramArch)))),
		is("MemorySize", f.Memory), is("Timeout", f.Timeout), is("Role", getAtt(f.ID+"Role", "Arn")),
		// Lambda's own lines for each event cost more than those of weir: only its warnings are kept.
		is("LoggingConfig", object(is("LogGroup", ref(f.ID+"Log")), is("LogFormat", "JSON"), is("SystemLogLevel", "WARN"))),
		is("VpcConfig", block("HasVpc", object(is("SubnetIds", ref(paramSubnets)), is("SecurityGroupIds", ref(paramGroups))))),
		is("Environment", object(is("Variables", object(f.Env...)))), is("KmsKeyArn", optional("HasDataKey", ref(paramDataKey))),
		is("Code", object(is("S3Bucket", ref("CodeBucket")), is("S3Key", ref(f.code())), is("S3ObjectVersion", optional("Has"+f.code()+"Version", ref(f.code()+"Version"))))),
	}
	s.add(f.ID, "It "+f.does()+".", "AWS::Lambda::Function", f.when(is("Properties", object(e...)))...)
	s.addRelease(f)
	if f.hasURL() {
		s.add(f.ID+"Url", "Requests are signed: the URL asks IAM.", "AWS::Lambda::Url", f.when(is("DependsOn", f.alias()), is("Properties", object(is("TargetFunctionArn", getAtt(f.ID, "Arn")), is("Qualifier", live), is("AuthType", "AWS_IAM"))))...)
	}
	switch f.Process {
	case Query:
		return
	case Ingest:
		// A message that fails comes again by itself.
		s.add(f.ID+"Messages", "", "AWS::Lambda::EventSourceMapping", is("Properties", object(is("FunctionName", ref(f.alias())), is("EventSourceArn", getAtt(f.Model.commands(), "Arn")),
			is("BatchSize", 100), is("MaximumBatchingWindowInSeconds", 1), is("FunctionResponseTypes", putOnOneLine(list("ReportBatchItemFailures"))))))
		return
	case Rows: // the schedule: see lambda/tick.go
		s.add(f.ID+"Tick", "", "AWS::Events::Rule", is("Properties", object(is("Description", "Looks whether the streams are read, and goes on with long lists."), is("ScheduleExpression", "rate(1 minute)"),
			is("Targets", list(object(is("Id", "tick"), is("Arn", ref(f.alias()))))))))
		s.add(f.ID+"TickPermission", "", "AWS::Lambda::Permission", is("Properties", object(is("FunctionName", ref(f.alias())), is("Action", "lambda:InvokeFunction"),
			is("Principal", "events.amazonaws.com"), is("SourceArn", getAtt(f.ID+"Tick", "Arn")))))
	}
	// Retries have no end: a record that cannot be used becomes a dead letter, so only failures of a service are tried again.
	// A tumbling window makes Lambda name the shard, by which ledgers keep positions. Above a parallelization factor of 1,
	// Lambda keeps the order of each item only, which positions by shard do not bear.
	for _, t := range f.Model.Tables {
		s.add(f.mappingID(t), "", "AWS::Lambda::EventSourceMapping", is("Properties", object(is("FunctionName", ref(f.alias())),
			is("EventSourceArn", either("Make"+t.ID+"Table", getAtt(t.ID+"Table", "StreamArn"), ref(t.stream()))),
			is("StartingPosition", "TRIM_HORIZON"), is("BatchSize", 1000), is("MaximumBatchingWindowInSeconds", 1), is("TumblingWindowInSeconds", 60),
			is("ParallelizationFactor", 1), is("FunctionResponseTypes", putOnOneLine(list("ReportBatchItemFailures"))),
			is("MaximumRetryAttempts", -1), is("MaximumRecordAgeInSeconds", -1),
			is("DestinationConfig", object(is("OnFailure", object(is("Destination", getAtt(f.Model.failures(), "Arn")))))),
			is("MetricsConfig", object(is("Metrics", putOnOneLine(list("EventCount"))))))))
	}
}

// addRelease adds a version of a function, the alias that goes to it, and how it goes over. Versions stay, so going back is
// a matter of the alias. CloudFormation publishes a version when its description changes, and Lambda does so only if the
// function has changed, too: both carry the name of the release.
func (s *stack) addRelease(f *Function) {
	version := f.ID + "Version"
	s.add(version, "", "AWS::Lambda::Version", f.when(is("DeletionPolicy", "Retain"), is("UpdateReplacePolicy", "Retain"),
		is("Properties", object(is("FunctionName", ref(f.ID)), is("Description", ref(paramRelease)))))...)
	s.add(f.alias(), "", "AWS::Lambda::Alias", f.when(
		is("UpdatePolicy", block("Shifts", object(is("CodeDeployLambdaAliasUpdate", object(is("ApplicationName", ref("ShiftApplication")), is("DeploymentGroupName", ref(f.ID+"Shift"))))))),
		is("Properties", object(is("Name", live), is("FunctionName", ref(f.ID)), is("FunctionVersion", getAtt(version, "Version")))))...)
	cond := "Shifts"
	if f.When != "" {
		cond += f.When
	}
	s.add(f.ID+"Shift", "", "AWS::CodeDeploy::DeploymentGroup", is("Condition", cond), is("Properties", object(
		is("ApplicationName", ref("ShiftApplication")), is("ServiceRoleArn", getAtt("ShiftRole", "Arn")),
		is("DeploymentConfigName", sub("CodeDeployDefault.Lambda${"+paramShift+"}")),
		is("DeploymentStyle", object(is("DeploymentType", "BLUE_GREEN"), is("DeploymentOption", "WITH_TRAFFIC_CONTROL"))),
		is("AlarmConfiguration", object(is("Enabled", true), is("Alarms", list(object(is("Name", ref(f.ID+"ErrorsAlarm"))))))),
		is("AutoRollbackConfiguration", object(is("Enabled", true), is("Events", putOnOneLine(list("DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM"))))))))
}

// addShift adds the resources that gradual shifts of all functions share.
func (s *stack) addShift() {
	s.add("ShiftApplication", "", "AWS::CodeDeploy::Application", is("Condition", "Shifts"), is("Properties", object(is("ComputePlatform", "Lambda"))))
	s.add("ShiftRole", "", "AWS::IAM::Role", is("Condition", "Shifts"), is("Properties", object(
		is("AssumeRolePolicyDocument", trust("codedeploy.amazonaws.com")),
		is("ManagedPolicyArns", list(sub("arn:${AWS::Partition}:iam::aws:policy/service-role/AWSCodeDeployRoleForLambda"))))))
}

// trust lets a service of AWS take a role.
func trust(service string) node {
	return object(is("Version", "2012-10-17"), is("Statement", list(object(is("Effect", "Allow"), is("Principal", object(is("Service", service))), is("Action", "sts:AssumeRole")))))
}

// addRole adds the role of a function, with one statement for each grant whose resources exist. A grant that depends
// on a parameter is under the parameter's condition.
func (s *stack) addRole(f *Function) {
	var statements []any
	for _, g := range statementsOf(f.Process) {
		resources, cond := s.resourcesOf(f, g.On)
		if len(resources) == 0 {
			continue
		}
		effect := "Allow"
		if g.ID == otherTables.ID {
			effect = "Deny"
		}
		e := []entry{{"Sid", g.ID, g.Reason}, is("Effect", effect), is("Action", putOnOneLine(list(strings2any(g.Actions)...))), is("Resource", putOnOneLine(list(resources...)))}
		if via := viaService[g.On]; via != "" {
			of := []entry{is("StringEquals", object(is("kms:ViaService", sub(via+".${AWS::Region}.amazonaws.com"))))}
			if g.On == DataKeyGrant {
				of = append(of, is("Bool", object(is("kms:GrantIsForAWSResource", true))))
			}
			e = append(e, is("Condition", object(of...)))
		}
		var conditions []entry
		for _, c := range keyConditions(g) {
			values := []any{c.like}
			if c.own {
				values = nil
				values = append(values, seq.Map(f.Model.Tables, func(t *Table) any { return sub(stageRows + "${" + t.name() + "}") })...)
			}
			conditions = append(conditions, is(c.operator, object(is("dynamodb:LeadingKeys", list(values...)))))
		}
		if len(conditions) > 0 {
			e = append(e, is("Condition", object(conditions...)))
		}
		switch n := object(e...); {
		case cond == "":
			statements = append(statements, n)
		default:
			statements = append(statements, block(cond, n))
		}
	}
	s.add(f.ID+"Role", "", "AWS::IAM::Role", f.when(is("Properties", object(
		is("AssumeRolePolicyDocument", trust("lambda.amazonaws.com")),
		is("Policies", list(object(is("PolicyName", "weir"), is("PolicyDocument", object(is("Version", "2012-10-17"), is("Statement", list(statements...))))))))))...)
}

// resourcesOf are the ARNs that a grant is for, and the condition under which they exist.
// cond is "" for a resource that always exists. A model without indexes has no resources for ModelIndexes.
func (s *stack) resourcesOf(f *Function, on Resource) (out []any, cond string) {
	const table = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"
	each := func(suffix string, has func(*Table) bool) {
		for _, t := range f.Model.Tables {
			if has(t) {
				out = append(out, sub(table+"${"+t.name()+"}"+suffix))
			}
		}
	}
	all := func(*Table) bool { return true }
	switch on {
	case OwnTable, CursorSecret:
		return []any{either("IsDefault", sub(table+"weir"), sub(table+"weir-${"+paramStage+"}"))}, ""
	case Registry:
		return []any{sub(table + "weir")}, "IsOther"
	case ModelTables:
		each("", all)
	case ModelIndexes:
		each("/index/*", func(t *Table) bool { return len(t.Def.Indexes) > 0 })
	case ModelStreams:
		each("/stream/*", all)
	case Domain:
		if !f.Model.Searches {
			return nil, ""
		}
		return []any{sub("${" + paramDomain + "}/*")}, "HasDomain"
	case Secret:
		if !f.Model.Searches {
			return nil, ""
		}
		return []any{ref(paramSecret)}, "HasSecret"
	case Interfaces:
		return []any{"*"}, "HasVpc"
	case FailureQueue:
		return []any{getAtt(f.Model.failures(), "Arn")}, ""
	case CommandQueue:
		return []any{getAtt(f.Model.commands(), "Arn")}, ""
	case LogGroup:
		return []any{sub("arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/weir/${" + paramStage + "}/" + f.log() + ":*")}, ""
	case DataKey, DataKeyGrant, EnvironmentKey, QueueKey:
		return []any{ref(paramDataKey)}, "HasDataKey"
	}
	return out, ""
}

// addAlarm adds an alarm. It tells the topic when it begins and when it ends, if the stack is given one.
func (s *stack) addAlarm(a alarm) {
	dims := func(pairs ...any) node {
		var out []any
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, putOnOneLine(object(is("Name", pairs[i]), is("Value", pairs[i+1]))))
		}
		return nodeOf(list(out...))
	}
	// A stage other than default is a dimension of weir's own metrics.
	of := func() any {
		switch m := a.Metric; {
		case m.Queue == "" && m.Function == nil:
			return nil
		case m.Queue != "":
			return dims("QueueName", getAtt(m.Queue, "QueueName"))
		case m.Table != nil:
			return dims("EventSourceMappingUUID", ref(m.Function.mappingID(m.Table)))
		case m.Namespace == lambdaMetrics:
			return dims("FunctionName", ref(m.Function.ID))
		default:
			own := []any{"Model", m.Function.Model.Name}
			return tagged("If", list("IsDefault", dims(own...), dims(append([]any{"Stage", ref(paramStage)}, own...)...)))
		}
	}()
	s.add(a.ID+"Alarm", "", "AWS::CloudWatch::Alarm", a.Metric.Function.when(is("Properties", object(
		is("AlarmDescription", sub(a.Help+" ${"+paramRunbook+"}#"+a.anchor())),
		is("Namespace", a.Metric.Namespace), is("MetricName", a.Metric.Name), is("Dimensions", of), is("Statistic", a.Metric.Statistic),
		is("Period", a.When.Seconds), is("EvaluationPeriods", a.When.Of), is("DatapointsToAlarm", a.When.Bad), is("Threshold", a.Threshold),
		is("ComparisonOperator", "GreaterThanOrEqualToThreshold"), is("TreatMissingData", a.When.Missing),
		is("AlarmActions", optional("HasTopic", putOnOneLine(list(ref(paramTopic))))), is("OKActions", optional("HasTopic", putOnOneLine(list(ref(paramTopic))))))))...)
}

// addDashboard adds a model's dashboard. Its name has the stage, so that stages in one account have one each.
func (s *stack) addDashboard(m *Model) {
	text := scalar(m.dashboard())
	text.Style = yaml.LiteralStyle
	var optional []entry
	for _, f := range m.Functions {
		if f.When != "" {
			optional = append(optional, is(string(f.Process), either(f.When+"Now", ref(f.ID), "none")))
		}
	}
	schema := func(by string) node { return either("IsDefault", "weir,"+by, "weir,Stage,"+by) }
	names := object(append(optional, is("Schema", either(paramMetrics+"Now", schema("Model,Table"), schema("Model"))), is("Filter", either("IsDefault", "", sub(`Stage=\"${`+paramStage+`}\" `))))...)
	s.add(m.ID+"Dashboard", "", "AWS::CloudWatch::Dashboard", is("Properties", object(
		is("DashboardName", sub("weir-${"+paramStage+"}-"+m.Name)),
		is("DashboardBody", tagged("Sub", list(text, names))))))
}

// outputs are the facts that a program which writes to the models, or asks, has to know: URLs and queues.
func (s *stack) outputs() node {
	var out []entry
	for _, m := range s.plan.Models {
		for _, f := range m.Functions {
			if m.Searches && f.Process != Ingest {
				out = append(out, is(f.ID+"RoleArn", object(f.when(is("Description", "To be given a role in OpenSearch: it "+f.does()+"."), is("Value", getAtt(f.ID+"Role", "Arn")))...)))
			}
		}
		url := getAtt(m.ID+"IngestUrl", "FunctionUrl")
		out = append(out,
			is(m.ID+"Url", object(is("Description", "Where model "+m.Name+" takes writes over HTTP."), is("Value", url))),
			is(m.ID+"Queue", object(is("Description", "Where model "+m.Name+" takes commands."), is("Value", ref(m.commands())))),
			is(m.ID+"QueryUrl", object(is("Condition", paramQueries+"Now"), is("Description", "Where model "+m.Name+" answers queries."), is("Value", getAtt(m.ID+"QueryUrl", "FunctionUrl")))))
	}
	return object(out...)
}

// viaService are the services that use a key in the place of a process.
var viaService = map[Resource]string{DataKey: "dynamodb", DataKeyGrant: "dynamodb", EnvironmentKey: "lambda", QueueKey: "sqs"}

// searches reports whether a model has searches.
// A plan without searches has no parameter for a cluster, and no function that needs one.
func (p *Plan) searches() bool {
	return slices.ContainsFunc(p.Models, func(m *Model) bool { return m.Searches })
}

// names are the names of the models, in the order given.
func (p *Plan) names() []string {
	return seq.Map(p.Models, func(m *Model) string { return m.Name })
}

// head is the comment that a template begins with.
// It has no time and no version, so that a template changes only when its resources do.
func (p *Plan) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by projector deploy template %s. Make it again when the model\n# changes, and read the difference.\n", strings.Join(p.names(), " "))
	for _, m := range p.Models {
		if m.File != "" {
			fmt.Fprintf(&b, "# The packages of the functions hold the file of model %s as %s, beside the program bootstrap.\n", m.Name, m.File)
		}
	}
	return b.String()
}

// projection is the ProjectionType of an index.
func projection(ix *store.Index) string {
	if ix.KeysOnly {
		return "KEYS_ONLY"
	}
	return "ALL"
}
