package deploy

// parameter is a choice of a deployment. A name is part of users' scripts, and stays.
type parameter struct {
	Name, Help string
	Default    string
	// Required says that there is no default.
	Required bool
	// Pattern is a regular expression for the whole value, and Choices its only values; the
	// tool refuses others before anything is created.
	// An empty value is allowed only where the pattern allows it.
	Pattern string
	Choices []string
	Number  bool
	List    bool // of values, separated by commas
}

// The parameters that every template has.
const (
	paramStage       = "Stage"
	paramOwn         = "MakeOwnTable"
	paramRegistry    = "MakeRegistry"
	paramDerive      = "DeriveIn"
	paramLetters     = "LetterTtl"
	paramDataKey     = "DataKeyArn"
	paramLogKey      = "LogKeyArn"
	paramDays        = "LogRetentionDays"
	paramTopic       = "AlarmTopicArn"
	paramRunbook     = "RunbookUrl"
	paramConcurrency = "ConcurrencyAlarm"
	paramMetrics     = "TableMetrics"
	paramArch        = "Architecture"
	paramRelease     = "Release"
	paramShift       = "Shift"
	paramQueries     = "Queries"
	paramURL         = "OpenSearchUrl"
	paramDomain      = "OpenSearchDomainArn"
	paramSecret      = "OpenSearchSecretArn"
	paramSubnets     = "SubnetIds"
	paramGroups      = "SecurityGroupIds"
)

// atOnce is the Shift without CodeDeploy.
const atOnce = "AllAtOnce"

// parameters returns the parameters of a plan, in the order in which people are asked for them.
// The order is part of the template. A parameter is only added with a default, so that a template
// which is made again deploys with the values of before.
func parameters(p *Plan) []parameter {
	const arn = `^(arn:.+)?$`
	out := []parameter{
		{Name: paramStage, Default: "default", Pattern: `^[a-z0-9-]{1,32}$`,
			Help: "The deployment, such as prod. weir's own table is weir in the stage default, and weir-STAGE in others."},
		{Name: paramOwn, Default: "true", Choices: []string{"true", "false"},
			Help: "false if weir's own table of this stage exists already, made by another template or by deploy tables."},
		{Name: paramRegistry, Default: "true", Choices: []string{"true", "false"},
			Help: "Stages other than default note in the table weir which tables are theirs. false if that table exists already."},
	}
	for _, t := range p.Tables {
		out = append(out,
			parameter{Name: t.name(), Default: t.Def.Name, Pattern: `^[A-Za-z0-9_.-]{3,255}$`, Help: "The name of the model's table " + t.Def.Name + "."},
			parameter{Name: t.stream(), Pattern: arn, Help: "The stream of the table " + t.Def.Name + " if it exists already, with new and old images. Empty: the template makes the table."})
	}
	if p.searches() {
		out = append(out,
			parameter{Name: paramURL, Required: true, Pattern: `^https?://([^:@/]+@)?[^@?]+(\?sign=[a-z0-9-]+)?$`, Help: "The URL of the OpenSearch cluster, without a password."},
			parameter{Name: paramDomain, Pattern: arn, Help: "The ARN of the domain, if it is one of Amazon OpenSearch Service."},
			parameter{Name: paramSecret, Pattern: `^(arn:[^:]+:(secretsmanager|ssm):.+)?$`, Help: "The ARN of a secret, or of a parameter of the Parameter Store, with the password of OpenSearch. Empty: requests are signed, or need none."})
	}
	return append(out,
		parameter{Name: paramQueries, Default: "false", Choices: []string{"true", "false"}, Help: "true for a function with a URL that answers the queries of each model. The URL asks IAM."},
		parameter{Name: paramSubnets, List: true, Help: "The subnets of the functions, separated by commas, if OpenSearch is in a VPC. From there they must reach DynamoDB and its streams."},
		parameter{Name: paramGroups, List: true, Help: "The security groups of the functions in these subnets, separated by commas."},
		parameter{Name: paramDerive, Help: "The region that derives, if the tables are global tables."},
		parameter{Name: paramLetters, Pattern: `^([0-9]+[dh])?$`, Help: "After how long the rows that dead letters keep are deleted, such as 30d. Empty: when the letters are settled."},
		parameter{Name: paramDataKey, Pattern: arn, Help: "The KMS key of tables and queues. Empty: AWS owned keys."},
		parameter{Name: paramLogKey, Pattern: arn, Help: "The KMS key of log groups; its policy must allow CloudWatch Logs to use it. Empty: no key of yours."},
		parameter{Name: paramDays, Default: "30", Number: true, Choices: []string{"1", "3", "5", "7", "14", "30", "60", "90", "120", "150", "180", "365", "400", "545", "731", "1096", "1827", "3653"}, Help: "How many days logs are kept."},
		parameter{Name: paramTopic, Pattern: arn, Help: "The SNS topic that alarms notify. Empty: none."},
		parameter{Name: paramRunbook, Default: "operations.md", Pattern: `^[^#]+$`, Help: "The address of the page operations.md, as your people reach it. Each alarm names its section there."},
		parameter{Name: paramConcurrency, Default: "800", Number: true, Help: "At how many concurrent executions of the account an alarm begins: 80 % of its limit, which doctor prints."},
		parameter{Name: paramMetrics, Default: "false", Choices: []string{"true", "false"}, Help: "true for metrics of each table beside those of the model; CloudWatch charges each one."},
		parameter{Name: paramArch, Default: "arm64", Choices: []string{"arm64", "x86_64"}, Help: "What the programs are built for."},
		parameter{Name: "CodeBucket", Required: true, Help: "The bucket with the packages of the functions."},
		parameter{Name: "ProjectorCode", Default: "projector.zip", Help: "The key of the projector's package."},
		parameter{Name: "IngestCode", Default: "ingest.zip", Help: "The key of ingest's package."},
		parameter{Name: "ProjectorCodeVersion", Help: "The object version of the projector's package, in a bucket with versions. Empty: the latest, which CloudFormation takes only under a new key."},
		parameter{Name: "IngestCodeVersion", Help: "The object version of ingest's package, likewise."},
		parameter{Name: paramRelease, Required: true, Pattern: `^[A-Za-z0-9_.:-]{1,64}$`, Help: "A name of this deployment, such as a commit. Another name publishes a version of each function, and the alias live goes over to it: give another one whenever code or a parameter changes."},
		parameter{Name: paramShift, Default: atOnce, Choices: []string{atOnce, "Canary10Percent5Minutes", "Canary10Percent30Minutes", "Linear10PercentEvery1Minute", "Linear10PercentEvery10Minutes"},
			Help: "How requests and events go over to a new version. The gradual ways use CodeDeploy, which goes back by itself if the function fails."})
}
