SRCS_yaml := yaml_tree.c yaml_scalar.c yaml_json.c
