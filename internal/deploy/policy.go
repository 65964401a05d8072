package deploy

import (
	"slices"

	"weir/internal/owntable"
)

// Process is a kind of process, by its permissions.
type Process string

// The kinds of process.
const (
	Rows   Process = "rows"   // a function that derives rows and keeps search documents
	Ingest Process = "ingest" // a function that takes commands
	Query  Process = "query"  // a function that answers queries
)

// Resource is the subject of a permission.
type Resource int

// The resources of permissions.
const (
	OwnTable       Resource = iota // weir's own table
	CursorSecret                   // the row of weir's own table with the secret of cursors
	Registry                       // the own table of the stage default, in other stages: the rows stage|TABLE of the model's tables
	ModelTables                    // the model's tables
	ModelIndexes                   // the indexes of the model's tables
	ModelStreams                   // the streams of the model's tables
	Domain                         // the search domain
	Secret                         // the password of the search cluster
	Interfaces                     // the network interfaces of a function in a VPC
	FailureQueue                   // where Lambda reports records that it gave up
	CommandQueue                   // the commands that wait for the function
	LogGroup                       // the function's log group
	DataKey                        // the KMS key of tables
	DataKeyGrant                   // the same key, which DynamoDB takes over for a table
	EnvironmentKey                 // the same key, of the function's environment
	QueueKey                       // the same key, of queues
)

// Grant allows actions on resources.
// Actions are full names such as dynamodb:GetItem, sorted. A statement of a policy is one grant.
type Grant struct {
	ID      string
	On      Resource
	Actions []string
	// Service says which service of AWS makes these calls for the process. "" means that the
	// process makes them itself, and a test holds the list to the calls that it makes.
	Service string
	Reason  string // why the process needs it
	// Seldom has actions that the process needs so seldom that the test does not meet them, and
	// when it needs them.
	Seldom map[string]string
}

// row access, in groups that templates show together.
// dynamodb is the actions of these names.
func dynamodb(names ...string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "dynamodb:" + n
	}
	return out
}

// Grants are the needs of a kind of process, and nothing else.
// A test runs each kind of process against a recorder of calls and holds its grants to them, in both directions, so a
// call that a function newly makes fails that test before it fails on AWS. An unknown process has no grants.
// The lists are also those that doctor asks for (package survey).
// The result may share memory with other calls: do not change it.
func Grants(p Process) []Grant {
	switch p {
	case Rows:
		return append([]Grant{
			{ID: "OwnTable", On: OwnTable, Actions: dynamodb("BatchGetItem", "ConditionCheckItem", "DeleteItem", "DescribeTable", "PutItem", "Query", "UpdateItem"), Reason: "Ledgers, positions, dead letters, the catalog and the state of indexes.", Seldom: map[string]string{
				"dynamodb:ConditionCheckItem": "a copy or a dead letter is written while its tombstone or ledger must stay as it is",
			}},
			{ID: "Registry", On: Registry, Actions: dynamodb("BatchGetItem", "UpdateItem"), Reason: "Which stage each table belongs to."},
			{ID: "Tables", On: ModelTables, Actions: dynamodb("BatchGetItem", "ConditionCheckItem", "DeleteItem", "DescribeTable", "PutItem", "UpdateItem"), Reason: "The derived values, and the rows that they follow from."},
			{ID: "Domain", On: Domain, Actions: []string{"es:ESHttpDelete", "es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost", "es:ESHttpPut"}, Reason: "The documents.", Seldom: map[string]string{
				"es:ESHttpDelete": "an index of another filling stands where this one belongs",
			}},
			secret,
		}, streamed()...)
	case Ingest:
		return []Grant{
			{ID: "OwnTable", On: OwnTable, Actions: dynamodb("BatchGetItem", "DeleteItem", "PutItem", "UpdateItem"), Reason: "Claims of unique values, and idempotency keys."},
			{ID: "Registry", On: Registry, Actions: dynamodb("BatchGetItem", "UpdateItem"), Reason: "Which stage each table belongs to."},
			{ID: "Tables", On: ModelTables, Actions: dynamodb("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem"), Reason: "The rows that commands write.", Seldom: map[string]string{
				"dynamodb:ConditionCheckItem": "a unique value is given while the row that had it is written",
			}},
			{ID: "Indexes", On: ModelIndexes, Actions: dynamodb("Query"), Reason: "Whether another row has a unique value."},
			interfaces,
			{ID: "Commands", On: CommandQueue, Actions: []string{"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}, Service: "Lambda", Reason: "Lambda takes the messages of the queue."},
			{ID: "Log", On: LogGroup, Actions: logActions, Service: "Lambda", Reason: "Lambda writes the function's log."},
			dataKey, dataKeyGrant, environmentKey,
			{ID: "QueueKey", On: QueueKey, Actions: []string{"kms:Decrypt"}, Service: "SQS", Reason: "SQS decrypts messages for the function."},
		}
	case Query:
		return []Grant{
			{ID: "OwnTable", On: OwnTable, Actions: dynamodb("BatchGetItem"), Reason: "The catalog, the state of indexes, and the secret of cursors."},
			{ID: "CursorSecret", On: CursorSecret, Actions: dynamodb("PutItem"), Reason: "The first that needs the secret of cursors makes it.", Seldom: map[string]string{"dynamodb:PutItem": "no other program has made it"}},
			{ID: "Registry", On: Registry, Actions: dynamodb("BatchGetItem"), Reason: "Which stage each table belongs to."},
			{ID: "Tables", On: ModelTables, Actions: dynamodb("BatchGetItem", "DescribeTable", "Query"), Reason: "The rows that are asked for."},
			{ID: "Indexes", On: ModelIndexes, Actions: dynamodb("Query"), Reason: "The rows that are asked for by another key."},
			{ID: "Domain", On: Domain, Actions: []string{"es:ESHttpGet", "es:ESHttpHead", "es:ESHttpPost"}, Reason: "Searches."},
			secret,
			interfaces,
			{ID: "Log", On: LogGroup, Actions: logActions, Service: "Lambda", Reason: "Lambda writes the function's log."},
			dataKey, dataKeyGrant, environmentKey,
		}
	}
	return nil
}

// statementsOf are the permissions and denials of a role.
func statementsOf(p Process) []Grant {
	if p == Query { // it may write one row
		return Grants(p)
	}
	return append(slices.Clip(Grants(p)), otherTables)
}

// otherTables is the denial for a role that may write all other rows of weir's own table: the rows stage|TABLE of
// tables that are not its model's, which say to which stage and model these belong.
var otherTables = Grant{ID: "OtherTables", On: OwnTable, Actions: dynamodb("BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem"), Reason: "Tables of other models and stages are not this one's to claim."}

// stageRows begins the partition keys of the rows stage|TABLE.
var stageRows = owntable.StageOf("").Key.Partition.Text()

// keyCondition is one on dynamodb:LeadingKeys, the partition keys that a call names.
type keyCondition struct {
	operator string
	own      bool   // the values are the rows of the model's tables
	like     string // otherwise this
}

// keyConditions are those of a grant, nil for none.
func keyConditions(g Grant) []keyCondition {
	switch {
	case g.ID == otherTables.ID:
		return []keyCondition{{operator: "ForAnyValue:StringLike", like: stageRows + "*"}, {operator: "ForAnyValue:StringNotEquals", own: true}}
	case g.On == CursorSecret:
		return []keyCondition{{operator: "ForAllValues:StringEquals", like: owntable.Secret().Key.Partition.Text()}}
	case g.On == Registry:
		return []keyCondition{{operator: "ForAllValues:StringEquals", own: true}}
	}
	return nil
}

// secret is left out of a policy in which no secret is given. It is of one of the two services.
var secret = Grant{ID: "Secret", On: Secret, Actions: []string{"secretsmanager:GetSecretValue", "ssm:GetParameter"}, Reason: "The password of the search cluster.", Seldom: map[string]string{
	"secretsmanager:GetSecretValue": "the cluster asks for a password that Secrets Manager has",
	"ssm:GetParameter":              "the cluster asks for a password that the Parameter Store has",
}}

// interfaces is left out of a policy in which no subnets are given. IAM takes no narrower resource for it.
var interfaces = Grant{ID: "NetworkInterfaces", On: Interfaces, Service: "Lambda", Reason: "Lambda puts the function into the subnets.", Actions: []string{
	"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses"}}

// logActions leave out CreateLogGroup: the template makes the group, with its retention.
var logActions = []string{"logs:CreateLogStream", "logs:PutLogEvents"}

// dataKey is left out of a policy in which no key is given.
var dataKey = Grant{ID: "DataKey", On: DataKey, Actions: []string{"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"}, Service: "DynamoDB",
	Reason: "DynamoDB uses the key of a table for the function."}

// dataKeyGrant is for grants that DynamoDB makes of the key, and no others.
var dataKeyGrant = Grant{ID: "DataKeyGrant", On: DataKeyGrant, Actions: []string{"kms:CreateGrant"}, Service: "DynamoDB", Reason: "DynamoDB goes on using the key of a table in the background."}

var environmentKey = Grant{ID: "EnvironmentKey", On: EnvironmentKey, Actions: []string{"kms:Decrypt"}, Service: "Lambda", Reason: "Lambda decrypts the function's environment."}

// streamed is the grant that Lambda needs to deliver streams to a function.
// GetRecords and the iterators are called by Lambda in the name of the function's role, so the role
// needs them; it also looks at its streams itself.
func streamed() []Grant {
	return []Grant{
		{ID: "Streams", On: ModelStreams, Actions: dynamodb("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"), Reason: "Lambda reads the streams for the function, which looks how far they are read.",
			Seldom: map[string]string{"dynamodb:ListStreams": "only Lambda asks, for a mapping"}},
		{ID: "Failures", On: FailureQueue, Actions: []string{"sqs:SendMessage"}, Service: "Lambda", Reason: "Lambda reports what it gives up."},
		interfaces,
		{ID: "Log", On: LogGroup, Actions: logActions, Service: "Lambda", Reason: "Lambda writes the function's log."},
		dataKey, dataKeyGrant, environmentKey,
		{ID: "QueueKey", On: QueueKey, Actions: []string{"kms:Decrypt", "kms:GenerateDataKey*"}, Service: "SQS", Reason: "SQS encrypts what Lambda reports."},
	}
}
