SRCS_yaml := yaml_tree.c yaml_json.c
